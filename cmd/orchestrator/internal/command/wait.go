package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// waitFlag is --wait[=DURATION].
type waitFlag struct{ text string }

// forEver is the value of the flag without a value.
const forEver = "forever"

func (w *waitFlag) register(c *cobra.Command) {
	c.Flags().StringVar(&w.text, "wait", "", "wait until the job has ended, at most for the `duration`: --wait or --wait=30s")
	c.Flags().Lookup("wait").NoOptDefVal = forEver
}

func (w *waitFlag) on() bool { return w.text != "" }

func (w *waitFlag) check(*cobra.Command, []string) error {
	if limit, err := w.limit(); err != nil || limit < 0 || w.on() && w.text != forEver && limit == 0 {
		return usage("--wait: write a duration such as --wait=30s")
	}
	return nil
}

// limit is zero for none.
func (w *waitFlag) limit() (time.Duration, error) {
	if !w.on() || w.text == forEver {
		return 0, nil
	}
	return time.ParseDuration(w.text)
}

const (
	// lookAgain is how long one request waits; lookAgainLive is shorter, to keep the
	// line on a terminal current.
	lookAgain     = 30 * time.Second
	lookAgainLive = time.Second
)

// await waits for the job to end and prints it. Unless the job completed, it returns an
// error.
func (s *session) await(ctx context.Context, id string, wait waitFlag) error {
	limit, _ := wait.limit() // check has validated it.
	every := lookAgain
	live := liveJob{session: s, line: show.NewLine(s.notes), began: time.Now()}
	see := func(apiclient.Answer, v1.Job) {}
	if s.notes.Terminal {
		every = lookAgainLive
		see = func(_ apiclient.Answer, job v1.Job) { live.draw(ctx, job) }
	}
	answer, ended, err := s.Await(ctx, id, limit, every, see)
	live.line.Clear()
	if err != nil {
		return err
	}
	if err := present(s, answer, (*session).showJob); err != nil {
		return err
	}
	var ending v1.Job
	if err := answer.Into(&ending); err != nil {
		return err
	}
	switch {
	case !ended:
		return fmt.Errorf("the job is still %s after %s", ending.Status, limit)
	case ending.Status != job.StatusCompleted:
		return Exit{CodeFound}
	}
	return nil
}

// liveJob draws a job on a terminal while it runs.
type liveJob struct {
	*session
	line  *show.Line
	began time.Time
	// attempt says which attempt runs. Only operators may ask. It is read when the job
	// has changed, and no more after a refusal.
	attempt string
	seen    time.Time
	refused bool
}

func (l *liveJob) draw(ctx context.Context, job v1.Job) {
	if !l.refused && !job.UpdatedAt.Equal(l.seen) && !job.Ended() {
		l.seen = job.UpdatedAt
		l.ask(ctx, job.JobID.String())
	}
	parts := []string{job.JobType, string(job.Status)}
	for _, part := range []string{l.attempt, show.Clean(compact(job.Progress)), show.Age(time.Since(l.began))} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	l.line.Set(strings.Join(parts, "  "))
}

func (l *liveJob) ask(ctx context.Context, id string) {
	answer, err := l.Get(ctx, apiclient.Path("/debug/jobs", id), nil)
	var detail v1.JobDetail
	if err != nil || answer.Into(&detail) != nil {
		l.refused = true
		return
	}
	if l.attempt = ""; detail.AttemptsCharged > 0 {
		l.attempt = fmt.Sprintf("attempt %d of %d", detail.AttemptsCharged, detail.MaxAttempts)
	}
}
