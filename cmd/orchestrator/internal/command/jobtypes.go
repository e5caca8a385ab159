package command

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (p *Program) jobTypesCommand() *cobra.Command {
	schema := false
	c := &cobra.Command{
		Use:   "job-types [TYPE]",
		Short: "List the job types that plugins declare",
		Args:  atMost(1),
	}
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of the type's payload")
	check := func(args []string) error {
		if schema && len(args) == 0 {
			return usage("--schema needs a job type")
		}
		return nil
	}
	return p.speaks(c, check, func(ctx context.Context, s *session, args []string) error {
		switch {
		case len(args) == 0:
			answer, err := s.Get(ctx, "/job-types", nil)
			if err != nil {
				return err
			}
			return present(s, answer, s.showTypes)
		case schema:
			answer, err := s.JobTypeSchema(ctx, args[0])
			if err != nil {
				return err
			}
			return s.out.JSON(answer)
		}
		answer, err := s.JobType(ctx, args[0])
		if err != nil {
			return err
		}
		return present(s, answer, s.showType)
	})
}

func (s *session) showTypes(found v1.JobTypeList) error {
	table := show.NewTable(s.out,
		show.Column{Name: "TYPE"}, show.Column{Name: "PLUGIN"}, show.Column{Name: "VERSION"},
		show.Column{Name: "ATTEMPTS", Right: true}, show.Column{Name: "TIMEOUT", Right: true},
		show.Column{Name: "SCHEMA"}, show.Column{Name: "RETRY"}, show.Column{Name: "DESCRIPTION", Cut: true})
	for _, t := range found.JobTypes {
		table.Row(show.Text(t.JobType), show.Text(t.Plugin), show.Text(t.Version),
			show.Text(strconv.Itoa(t.MaxAttempts)), show.Text(show.Seconds(t.TimeoutSeconds)),
			show.Text(yesNo(t.HasSchema)), show.Text(policy(t.Retry)), show.Text(t.Description))
	}
	return table.Flush()
}

func (s *session) showType(t v1.JobType) error {
	fields := show.NewFields(s.out)
	fields.Add("TYPE", show.Text(t.JobType))
	fields.Add("DESCRIPTION", show.Text(t.Description))
	fields.Add("PLUGIN", show.Text(t.Plugin))
	fields.Add("VERSION", show.Text(t.Version))
	fields.Add("ATTEMPTS", show.Text(strconv.Itoa(t.MaxAttempts)))
	fields.Add("TIMEOUT", show.Text(show.Seconds(t.TimeoutSeconds)))
	if t.Concurrency > 0 {
		fields.Add("CONCURRENCY", show.Text(strconv.Itoa(t.Concurrency)+" per process"))
	}
	fields.Add("RETRY", show.Text(policy(t.Retry)))
	fields.Add("SCHEMA", show.Text(yesNo(t.HasSchema)))
	return fields.Flush()
}

// policy describes a retry policy in a few words.
func policy(r v1.Retry) string {
	var text string
	switch r.Backoff {
	case job.Exponential:
		text = fmt.Sprintf("exponential, %s × %s up to %s", exact(r.InitialDelaySeconds), decimal(r.Factor), exact(r.MaxDelaySeconds))
	case job.Fixed:
		text = "fixed, " + exact(r.InitialDelaySeconds)
	default:
		text = string(r.Backoff)
	}
	if r.Backoff != job.Immediate && (r.JitterMin != 1 || r.JitterMax != 1) {
		text += fmt.Sprintf(", jitter %s to %s", decimal(r.JitterMin), decimal(r.JitterMax))
	}
	if r.AtOnceAfterTimeout {
		text += ", immediate after a timeout"
	}
	return text
}

// exact formats a configured duration with all its digits.
func exact(s float64) string { return seconds(s).Round(time.Microsecond).String() }

func decimal(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
