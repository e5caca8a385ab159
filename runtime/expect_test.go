package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// await returns once the condition holds.
func await(t testing.TB, condition func() bool, told ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, tick, told...)
}

// awaitSignal returns once the channel is closed or has a value, which it takes.
func awaitSignal[T any](t testing.TB, signal <-chan T, told string) T {
	t.Helper()
	select {
	case value := <-signal:
		return value
	case <-time.After(patience):
		require.FailNow(t, "waited in vain for: "+told)
		panic("unreachable")
	}
}

// refused reports whether a caller may ask again, since a busy machine took longer than the
// store waits.
func refused(err error) bool {
	return errors.Is(err, job.ErrUnavailable) || errors.Is(err, job.ErrBusy)
}

// view asks again while it is refused.
func view(t testing.TB, db *database, id job.ID) job.View {
	t.Helper()
	v, err := db.Get(context.WithoutCancel(t.Context()), id)
	for began := time.Now(); refused(err) && time.Since(began) < patience; {
		v, err = db.Get(context.WithoutCancel(t.Context()), id)
	}
	require.NoError(t, err)
	return v
}

func awaitState(t testing.TB, db *database, id job.ID, state job.State) {
	t.Helper()
	await(t, func() bool { return view(t, db, id).State == state }, "job is to be %s", state)
}

// awaitAll returns once so many jobs are in the state.
func awaitAll(t testing.TB, db *database, n int, state job.State) {
	t.Helper()
	await(t, func() bool {
		return ask[int](t, db, "select count(*) from current_jobs where state = $1::text::job_state", string(state)) == n
	}, "%d jobs are to be %s", n, state)
}

// outcomes are those of the job's ended attempts, oldest first.
func outcomes(t testing.TB, db *database, id job.ID) []job.OutcomeKind {
	t.Helper()
	var kinds []job.OutcomeKind
	for _, a := range attempts(t, db, id) {
		kinds = append(kinds, a.Outcome)
	}
	return kinds
}

func attempts(t testing.TB, db *database, id job.ID) []job.Attempt {
	t.Helper()
	detail, err := db.Detail(t.Context(), id)
	require.NoError(t, err)
	return detail.Attempts
}

// charged is how many attempts the job has been charged for.
func charged(t testing.TB, db *database, id job.ID) int {
	t.Helper()
	return ask[int](t, db, "select attempt from current_jobs where job_id = $1", uuid(id))
}

// awaitRun returns the nth run that was started, counted from 1.
func awaitRun(t testing.TB, s *supervisor, n int) *run {
	t.Helper()
	await(t, func() bool { return len(s.started()) >= n }, "run %d is to start", n)
	return s.started()[n-1]
}

// requireSettled checks that nothing is held and that every list agrees with
// the ledger.
func requireSettled(t testing.TB, db *database) {
	t.Helper()
	require.Zero(t, ask[int](t, db, "select count(*) from leases"), "leases")
	requireSound(t, db)
}

func requireSound(t testing.TB, db *database) {
	t.Helper()
	checks, err := db.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ledger_and_lists", checks[0].Name)
	require.Equal(t, job.Fine, checks[0].Severity, checks[0].Details)
}
