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
		Short: "Print a link that logs a browser in",
		Long: `Print a link to the web UI. A browser that opens it within a minute is logged in as
you. It can be used once. Keep it to yourself.`,
		Args: NoArguments,
	}
	return p.asksServer(c, func(ctx context.Context, s *session, _ []string) error {
		answer, err := s.Post(ctx, apiclient.Path("/login-links"), nil, nil)
		if err != nil {
			return err
		}
		return present(s, answer, func(s *session, link v1.LoginLink) error {
			_, err := fmt.Fprintln(s.out, s.Server()+link.Path)
			return err
		})
	})
}
