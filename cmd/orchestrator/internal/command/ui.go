package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

func (p *Program) uiCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ui",
		Short: "Print a link that logs a browser in, or serve the pages of several cells",
		Long: `Print a link to the web UI. A browser that opens it within a minute is logged in as
you. It can be used once. Keep it to yourself.

With several servers, each of another cell, serve pages that show all cells together,
until a SIGTERM or SIGINT. The link leads to them. They ask the cells with your
credentials, and so are for this machine only.`,
		Args: NoArguments,
		Example: `  orchestrator ui
  orchestrator ui --cells FILE
  orchestrator ui --cells FILE --listen 127.0.0.1:9090`,
	}
	listen := ""
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8090", "`address` of the pages of several cells")
	o := &options{ofServer: true}
	link := p.speaksWith(o, c, printLink).RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		switch served, err := p.ServePages(c.Context(), o.target(), listen); {
		case served || err != nil:
			return presentable(err)
		case c.Flags().Changed("listen"):
			return usage("--listen is for the pages of several cells: name their servers with --cells, or with --server several times")
		}
		return link(c, args)
	}
	return c
}

func printLink(ctx context.Context, s *session, _ []string) error {
	answer, err := s.Post(ctx, apiclient.Path("/login-links"), nil, nil)
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, link v1.LoginLink) error {
		_, err := fmt.Fprintln(s.out, s.Server()+link.Path)
		return err
	})
}
