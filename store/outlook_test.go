package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// lookedOut is an outlook without its durations, which are never the same.
type lookedOut struct{ following, admitting, due, expiry, tick, operation bool }

func look(t testing.TB, s *Store, next time.Duration) (job.Outlook, lookedOut) {
	t.Helper()
	seen, err := s.Outlook(t.Context(), next)
	require.NoError(t, err)
	return seen, lookedOut{seen.Following, seen.Admitting, seen.Due != nil, seen.Expiry != nil, seen.Tick != nil, seen.Operation != nil}
}

func TestAnOutlookNamesWhatThereIsToDo(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*testing.T, *Store)
		want    lookedOut
	}{
		"nothing":                 {func(t *testing.T, s *Store) { settled(t, s, running(t, s), job.Success) }, lookedOut{}},
		"an end":                  {func(t *testing.T, s *Store) { settled(t, s, running(t, s, followed), job.Success) }, lookedOut{following: true}},
		"a workflow that goes on": {func(t *testing.T, s *Store) { submitWorkflow(t, s, workflow(t, named(t, "a"), named(t, "b", 0))) }, lookedOut{}},
		"a workflow that is being canceled": {func(t *testing.T, s *Store) {
			w := workflow(t, named(t, "a"), named(t, "b", 0))
			submitWorkflow(t, s, w)
			require.NoError(t, s.CancelWorkflow(t.Context(), w.ID))
		}, lookedOut{following: true}},
		"a newcomer at a gate": {func(t *testing.T, s *Store) { given(t, s, gated("type:A")) }, lookedOut{admitting: true}},
		"a gate that is due": {func(t *testing.T, s *Store) {
			exec(t, s, "insert into slots (gate, used, wake_at) values ('a', 0, now())")
		}, lookedOut{admitting: true}},
		"a gate that is due later": {func(t *testing.T, s *Store) {
			exec(t, s, "insert into slots (gate, used, wake_at) values ('a', 0, now() + interval '1 hour')")
		}, lookedOut{}},
		"a job that is due":        {func(t *testing.T, s *Store) { given(t, s, func(j *job.Submission) { j.Delay = 30 * time.Second }) }, lookedOut{due: true}},
		"a job that is due later":  {func(t *testing.T, s *Store) { given(t, s, func(j *job.Submission) { j.Delay = time.Hour }) }, lookedOut{}},
		"a held job":               {func(t *testing.T, s *Store) { given(t, s, func(j *job.Submission) { j.Hold = true }) }, lookedOut{}},
		"a job that expires":       {func(t *testing.T, s *Store) { given(t, s, func(j *job.Submission) { j.TTL = 30 * time.Second }) }, lookedOut{expiry: true}},
		"a job that expires later": {func(t *testing.T, s *Store) { given(t, s, func(j *job.Submission) { j.TTL = time.Hour }) }, lookedOut{}},
		"a tick": {func(t *testing.T, s *Store) {
			hourly(t, s, "hourly", func(one *job.Schedule) { one.NextAt = timeOf(t, s).Add(30 * time.Second) })
		}, lookedOut{tick: true}},
		"a later tick": {func(t *testing.T, s *Store) {
			hourly(t, s, "hourly", func(one *job.Schedule) { one.NextAt = timeOf(t, s).Add(time.Hour) })
		}, lookedOut{}},
		"an operation": {func(t *testing.T, s *Store) { operation(t, s, job.ActionRequeue, job.Filter{}) }, lookedOut{operation: true}},
		"an operation that goes slow": {func(t *testing.T, s *Store) {
			operation(t, s, job.ActionRequeue, job.Filter{})
			exec(t, s, "update operations set due_at = now() + interval '1 hour'")
		}, lookedOut{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			_, seen := look(t, s, aMinute)
			require.Equal(t, lookedOut{}, seen, "a new ledger")
			c.happens(t, s)
			_, seen = look(t, s, aMinute)
			require.Equal(t, c.want, seen)
		})
	}
}

func TestAnOutlookSaysWhenToLookAgain(t *testing.T) {
	s := open(t)
	given(t, s, func(j *job.Submission) { j.RunAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) })
	given(t, s, func(j *job.Submission) { j.Delay, j.TTL = 40*time.Minute, 50*time.Minute })
	seen, _ := look(t, s, time.Hour)
	require.InDelta(t, 40*time.Minute, *seen.Due, float64(patience))
	require.InDelta(t, 50*time.Minute, *seen.Expiry, float64(patience))
	pass(t, s, time.Hour)
	seen, _ = look(t, s, time.Hour)
	require.Negative(t, *seen.Due, "overdue")
}
