package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/client"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/command"
)

// healthWithin bounds the whole answer: the server gives its database a second.
const healthWithin = 3 * time.Second

// healthCommand is for probes where there is no other program than this one,
// as in an image without a shell.
func (p *program) healthCommand() *cobra.Command {
	var server string
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask whether a server is ready, as a probe does",
		Long: `Ask whether a server is ready, as a probe does: whether it answers, and its
database answers it, within three seconds. No credentials are needed or sent.
The exit code is 1 when it is not ready.`,
		Args: command.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return p.health(c.Context(), server) },
	}
	c.Flags().StringVar(&server, "server", "", "`URL` of the API (HOLDFAST_SERVER, or server.address of the configuration)")
	return c
}

func (p *program) health(ctx context.Context, server string) error {
	ctx, release := endOnSignal(ctx)
	defer release()
	if server == "" {
		server = p.getenv(envServer)
	}
	if server == "" {
		cfg, err := p.load()
		if err != nil {
			return err
		}
		server = "http://" + reachable(hostPort(cfg.Server.Address))
	}
	api, err := client.New(client.Config{Server: server, Agent: agent()})
	if err != nil {
		return usageError{err}
	}
	defer api.Close()
	bounded, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	_, err = api.Get(bounded, "/readyz", nil)
	// What it proposes is not for probes.
	var unreachable *client.UnreachableError
	if errors.As(err, &unreachable) {
		return fmt.Errorf("no answer from %s: %w", unreachable.Server, unreachable.Err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "ready")
	return err
}
