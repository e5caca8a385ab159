package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (p *Program) inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect ID",
		Short: "Show everything about a job, attempt by attempt",
		Args:  oneArgument,
	}
	return p.speaks(c, nil, func(ctx context.Context, s *session, args []string) error {
		answer, err := s.Inspect(ctx, args[0])
		if err != nil {
			return err
		}
		return present(s, answer, s.showDetail)
	})
}

func (s *session) showDetail(d v1.JobDetail) error {
	fields := show.NewFields(s.out)
	s.addJob(fields, d.Job)
	fields.Add("STATE", styled(d.State))
	fields.Add("TENANT", show.Text(d.Tenant))
	fields.Add("TAGS", show.Text(strings.Join(d.Tags, ", ")))
	fields.Add("PRIORITY", show.Text(strconv.Itoa(int(d.Priority))))
	fields.Add("KEY", show.Text(d.IdempotencyKey))
	if d.Held {
		fields.Add("HELD", show.Text("until it is released"))
	}
	fields.Add("DUE", show.Text(s.moment(d.RunAt)))
	fields.Add("ATTEMPTS", show.Text(attempts(d)))
	fields.Add("TIMEOUT", show.Text(show.Seconds(d.TimeoutSeconds)))
	fields.Add("FENCE", show.Text(strconv.FormatInt(d.Fence, 10)))
	fields.Add("WORKER", show.Text(d.Worker))
	if d.Lease != nil {
		fields.Add("LEASE", show.Text(s.lease(*d.Lease)))
	}
	fields.Add("TRACE", show.Text(d.TraceID))
	fields.Add("SEE", show.Text(d.TraceURL))
	fields.Add("PAYLOAD", show.Text(compact(d.Payload)))
	fields.Add("CHECKPOINT", show.Text(compact(d.Checkpoint)))
	fields.Add("PROGRESS", show.Text(compact(d.Progress)))
	fields.Add("RESULT", show.Text(compact(d.Result)))
	fields.Add("LAST ERROR", show.Cell{Text: d.LastError, Style: show.Bad})
	if err := fields.Flush(); err != nil {
		return err
	}
	return s.showAttempts(d.Attempts)
}

func attempts(d v1.JobDetail) string {
	text := fmt.Sprintf("%d of %d", d.AttemptsCharged, d.MaxAttempts)
	if d.Interruptions > 0 {
		text += ", " + show.Plural(d.Interruptions, "interruption")
	}
	if d.Crashes > 0 {
		text += ", " + show.Plural(d.Crashes, "crash")
	}
	return text
}

func (s *session) lease(l v1.Lease) string {
	text := "of " + l.Worker + ", claimed " + s.ago(l.ClaimedAt) + " ago"
	if left := l.ExpiresAt.Sub(s.now()); left > 0 {
		text += ", for another " + show.Age(left)
	} else {
		text += ", expired"
	}
	if l.CancelRequested {
		text += ", asked to cancel"
	}
	return text
}

// showAttempts prints the timeline: each attempt, its start and its outcome.
func (s *session) showAttempts(attempts []v1.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	s.out.Print("\n")
	table := show.NewTable(s.out,
		show.Column{Name: "#", Right: true}, show.Column{Name: "BEGAN"}, show.Column{Name: "TOOK", Right: true},
		show.Column{Name: "OUTCOME"}, show.Column{Name: "WORKER"}, show.Column{Name: "PLUGIN"}, show.Column{Name: "ERROR", Cut: true})
	for _, a := range attempts {
		table.Row(show.Text(strconv.Itoa(a.Number)), show.Text(a.ClaimedAt.UTC().Format(time.RFC3339)),
			show.Text(show.Seconds(a.DurationSeconds)), styled(a.Outcome), show.Text(a.Worker),
			show.Text(strings.TrimSpace(a.Plugin+" "+a.PluginVersion)), show.Text(fault(a)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if last := attempts[len(attempts)-1]; last.Stack != "" {
		stack := strings.TrimRight(show.CleanLines(last.Stack), "\n")
		s.out.Print("\n" + s.out.Paint(show.Head, "STACK of the last attempt") + "\n  " + strings.ReplaceAll(stack, "\n", "\n  ") + "\n")
	}
	return nil
}

func fault(a v1.Attempt) string {
	if a.Code == "" || a.Error == "" {
		return a.Code + a.Error
	}
	return a.Code + ": " + a.Error
}
