package pooler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgbouncer"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// The sessions of the standby have the role's settings, which come from the primary.
func TestThereMayBeAPoolerBeforeTheReplicaToo(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	_, err := postgres.SetDefaults(t.Context(), pair.Primary)
	require.NoError(t, err)
	pair.AwaitReplay(t)
	s, err := store.Open(t.Context(), store.Config{
		URL: pgbouncer.Start(t, pair.Primary, nil), DirectURL: pair.Primary, MaxConnections: 20,
		Replica: postgres.ReplicaConfig{URL: pgbouncer.Start(t, pair.Standby, nil), MaxLag: time.Hour},
	})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, submitOne(t, s, patience))
	pair.AwaitReplay(t)
	require.NoError(t, s.FollowReplica(t.Context()))
	require.Eventually(t, func() bool { return s.Replica().Used }, patience, glance)
	asked := &job.Staleness{}
	for range 10 {
		page, err := s.List(job.WithStaleness(t.Context(), asked), job.Filter{Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
	}
	_, err = s.Metrics(t.Context(), time.Hour)
	require.NoError(t, err)
	_, old := asked.Age()
	require.True(t, old)
	reads := s.Replica().Reads
	require.EqualValues(t, 11, reads[postgres.ByReplica], "%v", reads)
	checks, err := s.Diagnose(t.Context())
	require.NoError(t, err)
	require.Contains(t, checks, job.Check{Name: "replica", Severity: job.Fine, Summary: checks[len(checks)-1].Summary})
}
