package store

import (
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// try runs a verb. Sometimes the answer of one of its statements is lost, after the server has
// committed it. Then the verb must say that the outcome is unknown, or find it out itself.
// It reports whether the caller does not know the outcome.
func (m *model) try(t *rapid.T, verb string, do func(*Store) error) (unknown bool) {
	spare := -1
	// One in 40: rapid prefers small numbers. Each costs the server a new process, which is most of
	// what a sequence with many of them costs.
	if rapid.IntRange(0, 29).Draw(t, "lose") == 13 {
		spare = rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "answers before")
	}
	return m.tryLosing(verb, spare, do)
}

// tryLosing is try for the loss of the answer after so many others; -1 for none.
func (m *model) tryLosing(verb string, spare int, do func(*Store) error) (unknown bool) {
	m.world.seen.tried(verb)
	s := m.world.near
	if spare >= 0 {
		s = m.world.far
	}
	s.marks = newLowWaterMarks()
	if spare < 0 {
		require.NoError(m.t, do(s), verb)
		return false
	}
	m.world.proxy.SpareAnswers.Store(int32(spare)) //nolint:gosec // a few
	m.world.proxy.LoseAnswers.Store(1)
	err := do(s)
	if m.world.proxy.LoseAnswers.Swap(0) == 0 {
		m.world.seen.lost(verb)
		m.awaitQuiet()
	}
	m.world.proxy.SpareAnswers.Store(0)
	if err != nil {
		// It need not say that the outcome is unknown if it was only asking why it was refused.
		require.ErrorIs(m.t, err, job.ErrUnavailable, verb)
	}
	return err != nil
}

// again is try for a verb that its caller repeats as it was until the outcome is known. It
// reports whether it was repeated.
func (m *model) again(t *rapid.T, verb string, do func(*Store) error) (repeated bool) {
	if !m.try(t, verb, do) {
		return false
	}
	m.world.near.marks = newLowWaterMarks()
	require.NoError(m.t, do(m.world.near), verb)
	return true
}

// awaitQuiet waits until the server has noticed that a connection is gone: a transaction in it
// that was not committed keeps its locks until then, and others pass over what it has locked.
// Then it connects again, however long that takes.
func (m *model) awaitQuiet() {
	for deadline := time.Now().Add(patience); ; {
		var busy int
		require.NoError(m.t, m.world.near.db.Worker.QueryRow(m.ctx, `select count(*) from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()`).Scan(&busy))
		if busy == 0 {
			break
		}
		require.True(m.t, time.Now().Before(deadline), "a lost connection is still there")
	}
	for name, pool := range pools(m.world.far) {
		for deadline := time.Now().Add(patience); pool.Ping(m.ctx) != nil; {
			require.True(m.t, time.Now().Before(deadline), "the %s pool has no connection", name)
		}
	}
}
