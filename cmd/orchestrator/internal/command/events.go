package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) eventsCommand() *cobra.Command {
	var jobType, tenant, tag string
	var after int64
	c := &cobra.Command{
		Use:   "events",
		Short: "Follow the ends of jobs",
		Long: `Follow the ends of jobs until you interrupt it. It reconnects, and then goes on where
it was. The server must record events (events.keep). With --json, each line is an event
with its id.`,
		Example: `  orchestrator events --type SEND_EMAIL
  orchestrator events --after 0 --json`,
		Args: NoArguments,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("after") && after < 0 {
				return usage("--after counts from 0")
			}
			return nil
		},
	}
	c.Flags().StringVar(&jobType, "type", "", "only jobs of this `type`")
	c.Flags().StringVar(&tenant, "tenant", "", "only jobs of this `tenant`")
	c.Flags().StringVar(&tag, "tag", "", "only jobs with this `tag`")
	c.Flags().Int64Var(&after, "after", 0, "begin after the event with this `id`; 0 for all that are kept (default: only new ones)")
	return p.asksServer(c, func(ctx context.Context, s *session, _ []string) error {
		query := url.Values{}
		for name, value := range map[string]string{"jobType": jobType, "tenant": tenant, "tag": tag} {
			if value != "" {
				query.Set(name, value)
			}
		}
		if c.Flags().Changed("after") {
			query.Set("lastEventId", strconv.FormatInt(after, 10))
		}
		return s.Follow(ctx, query, s.showEvent)
	})
}

func (s *session) showEvent(m apiclient.Message) error {
	if s.json {
		line, err := json.Marshal(struct {
			ID    json.Number     `json:"id"`
			Event string          `json:"event"`
			Data  json.RawMessage `json:"data"`
		}{json.Number(m.ID), m.Event, json.RawMessage(m.Data)})
		if err != nil {
			return fmt.Errorf("the server's answer is not what was expected: %w", err)
		}
		_, err = s.out.Write(append(line, '\n'))
		return err
	}
	if m.Event == "gap" {
		var gap v1.EventGap
		if err := m.Data.Into(&gap); err != nil {
			return err
		}
		s.notes.Print(fmt.Sprintf("Events %d to %d are not kept any more.\n", gap.After+1, gap.Next-1))
		return nil
	}
	var event v1.Event
	if err := m.Data.Into(&event); err != nil {
		return err
	}
	style := show.Plain
	if event.Status != job.StatusCompleted {
		style = show.Bad
	}
	status := string(event.Status)
	text := event.At.UTC().Format(lineTime) + "  " + s.out.Paint(style, show.Clean(status)) + strings.Repeat(" ", max(11-len(status), 2)) +
		event.JobID.String() + "  " + show.Clean(event.JobType) + "  " + show.Clean(event.Tenant)
	if len(event.Tags) > 0 {
		text += "  " + show.Clean(strings.Join(event.Tags, ","))
	}
	_, err := s.out.Write([]byte(text + "\n"))
	return err
}
