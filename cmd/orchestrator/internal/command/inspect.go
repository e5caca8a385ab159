package command

import (
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
	return p.speaks(c, presents("/debug/jobs", (*session).showDetail))
}

func (s *session) showDetail(d v1.JobDetail) error {
	fields := show.NewFields(s.out)
	s.addJob(fields, d.Job)
	fields.Add("STATE", styled(d.State))
	fields.Add("TENANT", d.Tenant)
	if d.ParentID != nil {
		fields.Add("PARENT", d.ParentID)
	}
	fields.Add("CALLBACK", d.CallbackURL)
	if d.WorkflowID != nil {
		fields.Add("WORKFLOW", d.WorkflowID)
	}
	if d.ResubmissionOf != nil {
		fields.Add("RESUBMISSION", "of "+d.ResubmissionOf.String())
	}
	for _, id := range d.Resubmissions {
		fields.Add("RESUBMITTED", "as "+id.String())
	}
	fields.Add("TAGS", strings.Join(d.Tags, ", "))
	fields.Add("PRIORITY", strconv.Itoa(int(d.Priority)))
	fields.Add("KEY", d.IdempotencyKey)
	if d.Held {
		fields.Add("HELD", "until it is released")
	}
	fields.Add("SHARES", terms(d.ConcurrencyKey, d.ConcurrencyLimit, d.OnConflict, d.FairnessKey))
	fields.Add("DUE", s.moment(d.RunAt))
	fields.Add("EXPIRES", s.moment(d.ExpiresAt))
	for _, wait := range d.Waits {
		fields.Add("WAITS", show.Cell{Text: wait.Message, Style: show.Mind})
	}
	fields.Add("ATTEMPTS", attempts(d))
	fields.Add("TIMEOUT", show.Seconds(d.TimeoutSeconds))
	fields.Add("FENCE", strconv.FormatInt(d.Fence, 10))
	fields.Add("WORKER", d.Worker)
	if d.Lease != nil {
		fields.Add("LEASE", s.lease(*d.Lease))
	}
	fields.Add("TRACE", d.TraceID)
	fields.Add("SEE", d.TraceURL)
	if !d.PayloadsWithheld {
		fields.Add("PAYLOAD", compact(d.Payload))
	}
	fields.Add("CHECKPOINT", compact(d.Checkpoint))
	fields.Add("PROGRESS", compact(d.Progress))
	fields.Add("RESULT", compact(d.Result))
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
	text := "of " + l.Worker + ", claimed " + s.ago(l.ClaimedAt)
	if l.BeganAt != nil {
		text += ", began " + s.ago(*l.BeganAt)
	}
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

// showAttempts prints the timeline: each attempt, when it was due and began, and its outcome.
func (s *session) showAttempts(attempts []v1.Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	s.out.Print("\n")
	table := show.NewTable(s.out, "#", "DUE", "BEGAN", "TOOK", "OUTCOME", "WORKER", "PLUGIN", "ERROR").CutLast()
	for _, a := range attempts {
		table.Row(a.Number, known(a.DueAt), known(beginning(a)), show.Right(show.Seconds(a.DurationSeconds)),
			styled(a.Outcome), a.Worker, strings.TrimSpace(a.Plugin+" "+a.PluginVersion), fault(a))
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

// beginning is when the handler was started. Earlier versions noted only when it was about to be.
func beginning(a v1.Attempt) *time.Time {
	if a.BeganAt == nil && a.DueAt == nil {
		return &a.ClaimedAt
	}
	return a.BeganAt
}

// known is a time as it stands in a table; empty for none.
func known(t *time.Time) string {
	if t == nil {
		return ""
	}
	return instant(*t)
}

func fault(a v1.Attempt) string {
	if a.Code == "" || a.Error == "" {
		return a.Code + a.Error
	}
	return a.Code + ": " + a.Error
}
