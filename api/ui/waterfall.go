package ui

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// timedDetail is a job with all times of its attempts that the API may know.
type timedDetail struct {
	v1.JobDetail
	Lease    *timedLease    `json:"lease,omitempty"`
	Attempts []timedAttempt `json:"attempts"`
}

type timedLease struct {
	v1.Lease
	DueAt   *time.Time `json:"dueAt,omitempty"`
	BeganAt *time.Time `json:"beganAt,omitempty"`
}

type timedAttempt struct {
	v1.Attempt
	DueAt   *time.Time `json:"dueAt,omitempty"`
	BeganAt *time.Time `json:"beganAt,omitempty"`
	DoneAt  *time.Time `json:"doneAt,omitempty"`
}

// The kinds of what a job does between two instants.
const (
	spanScheduled = "scheduled" // before it is due the first time
	spanWait      = "wait"      // due, until it is claimed
	spanSlot      = "slot"      // claimed, until its handler is started
	spanRun       = "run"       // while its handler runs
	spanLease     = "lease"     // until its lease has run out, or its end is written
	spanBackoff   = "backoff"   // until it is due again
	spanDead      = "dead"      // until somebody has requeued it
)

var spanNames = map[string]string{
	spanScheduled: "Scheduled", spanWait: "Queue wait", spanSlot: "Slot wait", spanRun: "Run", spanLease: "Lease wait", spanBackoff: "Backoff",
	spanDead: "Dead until its requeue",
}

// span is what a job did between two instants.
type span struct {
	Kind     string
	From, To time.Time
	// X and Width are where it is drawn.
	X, Width int
	// Lost says that the lease has run out, because nobody renewed it.
	Lost bool
}

// Name is the kind in words.
func (s span) Name() string { return spanNames[s.Kind] }

// Took is how long it lasted.
func (s span) Took() time.Duration { return s.To.Sub(s.From) }

// bar is an attempt, or what the job does now.
type bar struct {
	// Attempt is nil for what the job does now.
	Attempt *timedAttempt
	Label   string
	// Requeued says that somebody has requeued the job before it.
	Requeued bool
	Running  bool
	Spans    []span
	// Y is where it is drawn.
	Y int
}

// Took is how long the attempt was in a kind of span.
func (b bar) Took(kind string) string {
	for _, s := range b.Spans {
		if s.Kind == kind {
			return took(s.Took())
		}
	}
	return "–"
}

// FollowsOthers reports whether the job waits for others of its workflow.
func (d timedDetail) FollowsOthers() bool {
	return slices.ContainsFunc(d.Waits, func(w v1.Wait) bool { return w.Reason == job.WaitPredecessors })
}

// waterfall is the life of a job, attempt by attempt.
type waterfall struct {
	From, To time.Time
	Bars     []bar
	Height   int
}

// The measures of the drawing.
const (
	barsFrom, barsTo = 90, 990
	barHeight        = 28
)

// waterfallOf draws the times that the API says, and no others. Where it does not know when a
// job was due, or its handler began, one span covers both.
func waterfallOf(d timedDetail, now time.Time) waterfall {
	w := waterfall{From: d.CreatedAt, To: now}
	if d.FinishedAt != nil {
		w.To = *d.FinishedAt
	}
	before := d.CreatedAt
	for i := range d.Attempts {
		a := &d.Attempts[i]
		b := bar{Attempt: a, Label: fmt.Sprintf("Attempt %d", a.Number), Requeued: i > 0 && requeued(d.Attempts[i-1], *a)}
		b.waits(untilDue(i == 0, b.Requeued), before, a.DueAt, a.ClaimedAt)
		done := a.EndedAt
		if a.DoneAt != nil {
			done = *a.DoneAt
		}
		switch {
		case a.BeganAt != nil:
			b.add(spanSlot, a.ClaimedAt, *a.BeganAt)
			b.add(spanRun, *a.BeganAt, done)
			b.add(spanLease, done, a.EndedAt)
		case a.Outcome == job.Released:
			b.add(spanSlot, a.ClaimedAt, a.EndedAt)
		default:
			b.add(spanRun, a.ClaimedAt, done)
			b.add(spanLease, done, a.EndedAt)
		}
		if last := len(b.Spans) - 1; last >= 0 && b.Spans[last].Kind == spanLease {
			b.Spans[last].Lost = a.Outcome == job.LeaseExpired
		}
		before = a.EndedAt
		w.Bars = append(w.Bars, b)
	}
	if b := current(d, before, now); b != nil {
		w.Bars = append(w.Bars, *b)
	}
	w.place()
	return w
}

// current is what the job does now; nil if it has ended.
func current(d timedDetail, before, now time.Time) *bar {
	b := bar{Label: "Now"}
	if n := len(d.Attempts); n > 0 {
		next := timedAttempt{Attempt: v1.Attempt{Number: d.AttemptsCharged + 1}}
		if d.Lease != nil {
			next.Number = d.AttemptsCharged
		}
		b.Requeued = requeued(d.Attempts[n-1], next)
	}
	kind := untilDue(len(d.Attempts) == 0, b.Requeued)
	switch l := d.Lease; {
	case l != nil:
		b.Label, b.Running = fmt.Sprintf("Attempt %d", d.AttemptsCharged), true
		b.waits(kind, before, l.DueAt, l.ClaimedAt)
		began := l.ClaimedAt
		if l.BeganAt != nil {
			b.add(spanSlot, l.ClaimedAt, *l.BeganAt)
			began = *l.BeganAt
		}
		b.add(spanRun, began, now)
	case d.State.Final():
		return nil
	default:
		b.waits(kind, before, d.RunAt, now)
	}
	return &b
}

// untilDue is the kind of what a job does until it is due.
func untilDue(first, requeued bool) string {
	switch {
	case first:
		return spanScheduled
	case requeued:
		return spanDead
	default:
		return spanBackoff
	}
}

// waits adds the time from one instant until the job was claimed: until it was due, and then.
func (b *bar) waits(kind string, from time.Time, due *time.Time, until time.Time) {
	if due != nil && due.After(from) {
		end := *due
		if end.After(until) {
			end = until
		}
		b.add(kind, from, end)
		from = end
	}
	b.add(spanWait, from, until)
}

// add adds a span, unless it lasted no time.
func (b *bar) add(kind string, from, to time.Time) {
	if to.After(from) {
		b.Spans = append(b.Spans, span{Kind: kind, From: from, To: to})
	}
}

// requeued reports whether the job died, or would have, and has all its attempts again.
func requeued(before, after timedAttempt) bool {
	charged := []job.OutcomeKind{job.Failure, job.PermanentFailure, job.Timeout, job.Crash}
	return after.Number < before.Number || after.Number == before.Number && slices.Contains(charged, before.Outcome)
}

// place gives everything its place in the drawing.
func (w *waterfall) place() {
	for _, b := range w.Bars {
		for _, s := range b.Spans {
			if s.To.After(w.To) {
				w.To = s.To
			}
		}
	}
	whole := max(w.To.Sub(w.From), 1)
	x := func(at time.Time) int {
		return barsFrom + int(float64(barsTo-barsFrom)*float64(at.Sub(w.From))/float64(whole))
	}
	for i := range w.Bars {
		w.Bars[i].Y = i * barHeight
		for j := range w.Bars[i].Spans {
			s := &w.Bars[i].Spans[j]
			s.X = x(s.From)
			s.Width = max(x(s.To)-s.X, 2)
		}
	}
	w.Height = len(w.Bars)*barHeight + 20
}
