package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
)

// healthWithin bounds the whole check. The server gives its database one second.
const healthWithin = 3 * time.Second

// healthCommand is a probe for places without other programs, such as an image
// without a shell.
func (p *program) healthCommand() *cobra.Command {
	var server string
	var asJSON bool
	c := &cobra.Command{
		Use:   "health",
		Short: "Check whether a server is ready, as a probe does",
		Long: `Check whether a server is ready: it and its database must answer within three
seconds. It needs and sends no credentials. The exit code is 1 when the server is
not ready.`,
		Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return p.health(c.Context(), server, asJSON) },
	}
	c.Flags().StringVar(&server, "server", "", "`URL` of the API (HOLDFAST_SERVER, or server.address of the configuration)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: ready, server and, unless it is ready, the reason")
	return c
}

func (p *program) health(ctx context.Context, server string, asJSON bool) error {
	ctx, release := endOnSignal(ctx)
	defer release()
	api, err := p.probed(server)
	if err != nil {
		return err
	}
	defer api.Close()
	switch reason := p.unready(ctx, api); {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case asJSON:
		return p.printHealth(api.Server(), reason)
	case reason != nil:
		return reason
	}
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}

// probed returns a client of the given server, or of the one that the environment or
// the configuration names.
func (p *program) probed(server string) (*apiclient.Client, error) {
	if server == "" {
		server = config.TrimLineEnd(p.getenv(config.EnvServer))
	}
	if server == "" {
		cfg, err := p.load()
		if err != nil {
			return nil, err
		}
		server = "http://" + reachable(cfg.Server.Address)
	}
	api, err := apiclient.New(apiclient.Config{Server: server, Agent: agent()})
	if err != nil {
		return nil, usageError{err}
	}
	return api, nil
}

// unready returns why the server is not ready; nil when it is.
func (p *program) unready(ctx context.Context, api *apiclient.Client) error {
	bounded, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	_, err := api.Get(bounded, "/readyz", nil)
	// Probes need no advice on what to try next.
	var unreachable *apiclient.UnreachableError
	if errors.As(err, &unreachable) {
		return fmt.Errorf("no answer from %s: %w", unreachable.Server, unreachable.Err)
	}
	return err
}

// printHealth prints the result as JSON.
func (p *program) printHealth(server string, reason error) error {
	found := struct {
		Ready  bool   `json:"ready"`
		Server string `json:"server"`
		Reason string `json:"reason,omitempty"`
	}{Ready: reason == nil, Server: server}
	if reason != nil {
		found.Reason = reason.Error()
	}
	if err := json.NewEncoder(p.stdout).Encode(found); err != nil {
		return err
	}
	if reason != nil {
		return command.Exit{Code: exitFailure}
	}
	return nil
}
