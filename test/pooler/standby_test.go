package pooler

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgbouncer"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// Behind a pooler nobody knows which backend a connection has. If the connections of writes
// that wait for a standby were closed, the server would not notice, and others would follow.
func TestNoMoreCommitsWaitForAStandbyThanThePoolHasConnections(t *testing.T) {
	const submissions = 6 // three tenths of the connections
	pair := pgtest.NewPair(t)
	through := pgbouncer.Start(t, pair.Primary, nil)
	s, err := store.Open(t.Context(), store.Config{URL: through, DirectURL: pair.Primary, MaxConnections: 20})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	db, err := pgxpool.New(t.Context(), pair.Primary)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.NoError(t, submitOne(t, s, patience))

	pair.Stall()
	waiting := func() int { return count(t, db, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") }
	submit := func() { require.ErrorIs(t, submitOne(t, s, 200*time.Millisecond), context.DeadlineExceeded) }
	for until := time.Now().Add(patience); waiting() < submissions && time.Now().Before(until); {
		submit()
	}
	for range 10 {
		submit()
		require.Equal(t, submissions, waiting())
	}
	_, err = s.Workers(t.Context())
	require.NoError(t, err, "reads go on")
	pair.Resume()
	require.NoError(t, submitOne(t, s, patience))
	require.Eventually(t, func() bool { return waiting() == 0 }, patience, glance)
}

func submitOne(t *testing.T, s *store.Store, within time.Duration) error {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return s.Submit(ctx, []job.Submission{{
		ID: job.ID(id), Type: "ECHO", Tenant: job.DefaultTenant, Payload: []byte(`{}`), MaxAttempts: 1, Timeout: time.Minute,
	}})[0].Err
}
