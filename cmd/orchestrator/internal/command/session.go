package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// session is one run of a command.
type session struct {
	*apiclient.Client
	stdin io.Reader
	// out gets the answer; notes gets progress, remarks and failures.
	out, notes show.Screen
	json       bool
	now        func() time.Time
}

// options are the flags that all commands have.
type options struct {
	// ofServer is for commands that need a server, not just its database.
	ofServer bool

	servers []string
	cells   string
	direct  bool
	json    bool
	color   string
}

func (o *options) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&o.servers, "server", nil,
		"`URL` of the API (HOLDFAST_SERVER, or server.address of the configuration); repeatable for cells, as NUMBER=URL")
	flags.StringVar(&o.cells, "cells", "", "`file` with the number and URL of each cell, one a line")
	flags.BoolVar(&o.direct, "direct", false, "go straight to the database of the configuration, without a server")
	flags.BoolVar(&o.json, "json", false, "print the API's JSON")
	flags.StringVar(&o.color, "color", string(show.Auto), "`when` to use colors: auto, always or never")
	complete(c, "color", fixed(string(show.Auto), string(show.Always), string(show.Never)))
	if o.ofServer {
		flags.Lookup("direct").Hidden = true // It exists so that the error can explain.
	}
}

func (o *options) check() error {
	if err := show.Colors(o.color).Check(); err != nil {
		return UsageError{err}
	}
	if o.direct && o.ofServer {
		return usage("--direct does not work with this command: plugins run in servers, and the database knows nothing of them.\n" +
			"  Leave it out. Name the server with --server or HOLDFAST_SERVER unless it is the usual one.")
	}
	if o.direct && (len(o.servers) > 0 || o.cells != "") {
		return usage("use --direct or --server, not both")
	}
	if len(o.servers) > 0 && o.cells != "" {
		return usage("use --server or --cells, not both")
	}
	return nil
}

func (o *options) target() Target {
	return Target{Servers: o.servers, Cells: o.cells, Direct: o.direct}
}

// runFunc is what a command does when it is connected.
type runFunc func(ctx context.Context, s *session, args []string) error

// speaks makes c a command that calls the API.
func (p *Program) speaks(c *cobra.Command, run runFunc) *cobra.Command {
	return p.speaksWith(&options{}, c, run)
}

// asksServer does the same as speaks, for a command that does not work with --direct.
func (p *Program) asksServer(c *cobra.Command, run runFunc) *cobra.Command {
	return p.speaksWith(&options{ofServer: true}, c, run)
}

func (p *Program) speaksWith(o *options, c *cobra.Command, run runFunc) *cobra.Command {
	o.register(c)
	p.completeAll(c, o)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		ctx, release := p.UntilSignal(c.Context())
		defer release()
		err := p.inSession(ctx, o, func(s *session) error { return run(ctx, s, args) })
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			return cause
		}
		var unreachable *apiclient.UnreachableError
		if errors.As(err, &unreachable) {
			unreachable.OfServer = o.ofServer
		}
		return presentable(err)
	}
	return c
}

func (p *Program) inSession(ctx context.Context, o *options, run func(*session) error) error {
	api, closeAPI, err := p.Connect(ctx, o.target())
	if err != nil {
		return err
	}
	defer closeAPI()
	return run(&session{
		Client: api, stdin: p.Stdin, json: o.json, now: p.Now,
		out:   show.NewScreen(p.Stdout, show.Colors(o.color), p.Getenv),
		notes: show.NewScreen(p.Stderr, show.Colors(o.color), p.Getenv),
	})
}

// present prints an answer: unchanged with --json, and otherwise with show.
func present[T any](s *session, answer apiclient.Answer, show func(*session, T) error) error {
	if s.json {
		return s.out.JSON(answer)
	}
	var said T
	if err := answer.Into(&said); err != nil {
		return err
	}
	return show(s, said)
}

// presents returns a runFunc that presents the resource at a path. The arguments of the
// command are further parts of the path.
func presents[T any](path string, show func(*session, T) error) runFunc {
	return func(ctx context.Context, s *session, args []string) error {
		answer, err := s.Get(ctx, apiclient.Path(path, args...), nil)
		if err != nil {
			return err
		}
		return present(s, answer, show)
	}
}

// cleanError is an error whose text is safe on a terminal.
type cleanError struct{ error }

func (e cleanError) Error() string { return show.CleanLines(e.error.Error()) }
func (e cleanError) Unwrap() error { return e.error }

func presentable(err error) error {
	var exit Exit
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return cleanError{err}
}

// complain reports a failure without ending the command.
func (s *session) complain(what string, err error) {
	s.notes.Print(complaint(what, err))
}

func complaint(what string, err error) string {
	text := show.CleanLines(fmt.Sprintf("%s: %v", what, err))
	return "orchestrator: " + strings.TrimRight(text, "\n") + "\n"
}

// since is the age of a past time.
func (s *session) since(t time.Time) time.Duration { return s.now().Sub(t) }

func (s *session) ago(t time.Time) string { return show.Age(s.since(t)) + " ago" }

// moment formats a time for lists of fields.
func (s *session) moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	at := t.UTC().Format(time.RFC3339)
	if late := s.since(*t); late < 0 {
		return at + " (in " + show.Age(-late) + ")"
	}
	return at + " (" + s.ago(*t) + ")"
}
