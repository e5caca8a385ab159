package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// at is an instant, in seconds after the job was created.
func at(seconds float64) time.Time {
	return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// tried is an attempt with the times due, claimed, began, done and ended; below 0 for unknown.
func tried(number int, outcome job.OutcomeKind, due, claimed, began, done, ended float64) timedAttempt {
	known := func(seconds float64) *time.Time {
		if seconds < 0 {
			return nil
		}
		instant := at(seconds)
		return &instant
	}
	return timedAttempt{
		Attempt: v1.Attempt{Number: number, Outcome: outcome, ClaimedAt: at(claimed), EndedAt: at(ended)},
		DueAt:   known(due), BeganAt: known(began), DoneAt: known(done),
	}
}

func TestAWaterfallHasTheTimesOfTheAPI(t *testing.T) {
	type piece struct {
		kind     string
		from, to float64
	}
	due := at(90)
	for name, c := range map[string]struct {
		attempts []timedAttempt
		charged  int
		lease    *timedLease
		state    job.State
		runAt    *time.Time
		now      float64
		want     [][]piece
		requeued []bool
	}{
		"retry": {
			attempts: []timedAttempt{tried(1, job.Failure, 0, 1, 2, 5, 5), tried(2, job.Success, 15, 16, 17, -1, 20)}, state: job.Succeeded,
			want: [][]piece{
				{{"wait", 0, 1}, {"slot", 1, 2}, {"run", 2, 5}},
				{{"backoff", 5, 15}, {"wait", 15, 16}, {"slot", 16, 17}, {"run", 17, 20}},
			},
		},
		"crash": {
			attempts: []timedAttempt{tried(1, job.Crash, 0, 1, 1, 4, 4.5)}, state: job.Dead,
			want: [][]piece{{{"wait", 0, 1}, {"run", 1, 4}, {"lease", 4, 4.5}}},
		},
		"timeout": {
			attempts: []timedAttempt{tried(1, job.Timeout, 0, 1, 1.5, 31.5, 32)}, state: job.Dead,
			want: [][]piece{{{"wait", 0, 1}, {"slot", 1, 1.5}, {"run", 1.5, 31.5}, {"lease", 31.5, 32}}},
		},
		"snooze": {
			attempts: []timedAttempt{tried(1, job.Snoozed, 0, 1, 1, 2, 2), tried(1, job.Success, 62, 62, 62, -1, 63)}, state: job.Succeeded,
			want:     [][]piece{{{"wait", 0, 1}, {"run", 1, 2}}, {{"backoff", 2, 62}, {"run", 62, 63}}},
			requeued: []bool{false, false},
		},
		"requeue": {
			attempts: []timedAttempt{tried(1, job.PermanentFailure, 0, 1, 1, 2, 2), tried(1, job.Success, 100, 101, 101, -1, 102)}, state: job.Succeeded,
			want:     [][]piece{{{"wait", 0, 1}, {"run", 1, 2}}, {{"dead", 2, 100}, {"wait", 100, 101}, {"run", 101, 102}}},
			requeued: []bool{false, true},
		},
		"requeued, and not claimed again": {
			attempts: []timedAttempt{tried(1, job.PermanentFailure, 0, 1, 1, 2, 2)}, state: job.Queued, runAt: &due, now: 100,
			want:     [][]piece{{{"wait", 0, 1}, {"run", 1, 2}}, {{"dead", 2, 90}, {"wait", 90, 100}}},
			requeued: []bool{false, true},
		},
		"requeued, and running": {
			attempts: []timedAttempt{tried(1, job.PermanentFailure, 0, 1, 1, 2, 2)}, state: job.Running, now: 100, charged: 1,
			lease:    &timedLease{Lease: v1.Lease{ClaimedAt: at(95)}, DueAt: &due},
			want:     [][]piece{{{"wait", 0, 1}, {"run", 1, 2}}, {{"dead", 2, 90}, {"wait", 90, 95}, {"run", 95, 100}}},
			requeued: []bool{false, true},
		},
		"lost lease, and the job keeps its place": {
			attempts: []timedAttempt{tried(1, job.LeaseExpired, 0, 1, 2, 10, 40), tried(1, job.Success, 0, 41, 41, -1, 42)}, state: job.Succeeded,
			want: [][]piece{
				{{"wait", 0, 1}, {"slot", 1, 2}, {"run", 2, 10}, {"lease", 10, 40}}, {{"wait", 40, 41}, {"run", 41, 42}},
			},
			requeued: []bool{false, false},
		},
		"given back before it began": {
			attempts: []timedAttempt{tried(1, job.Released, 0, 1, -1, -1, 2)}, state: job.Queued, now: 5,
			want: [][]piece{{{"wait", 0, 1}, {"slot", 1, 2}}, {{"wait", 2, 5}}},
		},
		"scheduled": {
			state: job.Created, runAt: &due, now: 30,
			want: [][]piece{{{"scheduled", 0, 30}}},
		},
		"running": {
			lease: &timedLease{Lease: v1.Lease{ClaimedAt: at(3)}}, state: job.Running, now: 9,
			want: [][]piece{{{"wait", 0, 3}, {"run", 3, 9}}},
		},
		"waits for its retry": {
			attempts: []timedAttempt{tried(1, job.Failure, -1, 1, -1, -1, 2)}, state: job.Retry, runAt: &due, now: 30, charged: 1,
			want: [][]piece{{{"wait", 0, 1}, {"run", 1, 2}}, {{"backoff", 2, 30}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := timedDetail{Attempts: c.attempts, Lease: c.lease}
			d.CreatedAt, d.State, d.RunAt, d.AttemptsCharged = at(0), c.state, c.runAt, c.charged
			now := at(c.now)
			if c.state.Final() {
				ended := c.attempts[len(c.attempts)-1].EndedAt
				d.FinishedAt = &ended
				now = at(1000)
			}
			w := waterfallOf(d, now)
			var got [][]piece
			for i, b := range w.Bars {
				var pieces []piece
				for _, s := range b.Spans {
					pieces = append(pieces, piece{s.Kind, s.From.Sub(at(0)).Seconds(), s.To.Sub(at(0)).Seconds()})
					require.Equal(t, s.Kind == spanLease && b.Attempt.Outcome == job.LeaseExpired, s.Lost)
					require.GreaterOrEqual(t, s.X, barsFrom)
					require.LessOrEqual(t, s.X+s.Width, barsTo+2)
				}
				got = append(got, pieces)
				if c.requeued != nil {
					require.Equal(t, c.requeued[i], b.Requeued)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
