package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// editFlags have a flag for each member of a job that can be changed. Only the server
// checks their values.
type editFlags struct {
	priority     int
	runAt, delay string
	tags         []string
}

func (f *editFlags) register(c *cobra.Command) {
	c.Flags().IntVar(&f.priority, "priority", 0, "the new priority; higher is more urgent")
	c.Flags().StringVar(&f.runAt, "run-at", "", "the new due `time` (RFC 3339), or now")
	c.Flags().StringVar(&f.delay, "delay", "", "due when this `time` has passed, such as 90s or 1h30m")
	c.Flags().StringSliceVar(&f.tags, "tags", nil, "the new tags: `words`, separated by commas; empty for none")
	AllowEmpty(c, "tags")
}

// body is the change as JSON; nil if no flag was given.
func (f *editFlags) body(c *cobra.Command) ([]byte, error) {
	members := make(map[string]any)
	for flag, member := range map[string]struct {
		name  string
		value any
	}{
		"priority": {"priority", f.priority}, "run-at": {"runAt", f.runAt}, "delay": {"delay", f.delay}, "tags": {"tags", f.tags},
	} {
		if c.Flags().Changed(flag) {
			members[member.name] = member.value
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return json.Marshal(members)
}

func (p *Program) editCommand() *cobra.Command {
	flags, states, dryRun := editFlags{}, []string(nil), false
	filtered := func(c *cobra.Command) bool { return len(jobFilters.query(c)) > 0 || len(states) > 0 }
	c := &cobra.Command{
		Use:   "edit [ID…]",
		Short: "Change the priority, due time or tags of jobs that wait",
		Long: `Change the priority, due time or tags of jobs that wait: those with the ids, or all
that match the filters. Jobs that run or have ended stay as they are.
A queued job that gets a due time in the future is scheduled again. A held job
that gets one is no longer held.`,
		Example: `  orchestrator edit 019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa --priority 10
  orchestrator edit --type SEND_EMAIL --tag nightly --delay 2h --dry-run
  orchestrator edit --tenant acme --state retry --run-at now`,
		Args: func(c *cobra.Command, ids []string) error {
			body, err := flags.body(c)
			switch {
			case err != nil:
				return err
			case len(ids) > 0 && filtered(c):
				return usage("give ids or filters, not both")
			case len(ids) == 0 && !filtered(c):
				return usage("give ids, or filters such as --type or --state; --state created,queued,retry is everything that waits")
			case len(ids) > 0 && dryRun:
				return usage("--dry-run goes with filters")
			case body == nil:
				return usage("nothing to change: set --priority, --run-at, --delay or --tags")
			case len(ids) > 0:
				return atLeastOne(c, ids)
			}
			return nil
		},
	}
	flags.register(c)
	jobFilters.register(c)
	c.Flags().StringSliceVar(&states, "state", nil, "only jobs in the `state`: created, which is scheduled or held; queued; or retry; repeatable")
	complete(c, "state", fixed("created", "queued", "retry"))
	c.Flags().BoolVar(&dryRun, "dry-run", false, "count the jobs, and change none")
	return p.speaks(c, func(ctx context.Context, s *session, ids []string) error {
		body, err := flags.body(c)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			return s.act("edit", ids, func(id string) (apiclient.Answer, error) {
				return s.Patch(ctx, apiclient.Path("/jobs", id), nil, body)
			})
		}
		query := jobFilters.query(c)
		for _, state := range states {
			query.Add("state", state)
		}
		if dryRun {
			query.Set("dryRun", "true")
		}
		return s.editAll(ctx, query, body, dryRun)
	})
}

// editAll changes all jobs that match, a thousand at a time.
func (s *session) editAll(ctx context.Context, query url.Values, body []byte, dryRun bool) error {
	done := " changed"
	if dryRun {
		done = " would be changed"
	}
	query.Set("limit", strconv.Itoa(pageLimit))
	line := show.NewLine(s.notes)
	defer line.Clear()
	total := 0
	for {
		answer, err := s.Patch(ctx, "/jobs", query, body)
		if err != nil {
			if total > 0 {
				err = fmt.Errorf("after %s: %w", show.Plural(total, "job"), err)
			}
			return err
		}
		var edited v1.Edited
		if err := answer.Into(&edited); err != nil {
			return err
		}
		if s.json {
			if err := s.out.JSON(answer); err != nil {
				return err
			}
		}
		total += edited.Count
		line.Set(show.Plural(total, "job") + done)
		if edited.NextCursor == "" {
			break
		}
		query.Set("cursor", edited.NextCursor)
	}
	line.Clear()
	if s.json {
		return nil
	}
	_, err := fmt.Fprintf(s.out, "%s%s\n", show.Plural(total, "job"), done)
	return err
}
