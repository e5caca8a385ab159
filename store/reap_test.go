package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestAReaperTakesOverWhatExpiredAndFencesTheOldOwnerOff(t *testing.T) {
	s := open(t)
	c, alive := running(t, s), running(t, s)
	require.Empty(t, reap(t, s, 10))
	expire(t, s, c.Lease)

	expired := reap(t, s, 10)
	require.Len(t, expired, 1)
	got := expired[0]
	require.NotEqual(t, c.ID, got.ID)
	require.Equal(t, c.RunAt, got.RunAt)
	require.Equal(t, c.ClaimedAt, got.ClaimedAt)
	require.False(t, got.ReapedAt.Before(got.ExpiredAt))
	require.Equal(t, job.Expired{
		Lease: job.Lease{JobID: c.JobID, ID: got.ID, Fence: c.Fence},
		Type:  jobType, Attempt: 1, MaxAttempts: c.MaxAttempts, Worker: worker, WorkerGone: true,
		Tenant: c.Tenant, Trace: c.Trace, CreatedAt: c.CreatedAt, RunAt: c.RunAt, ClaimedAt: c.ClaimedAt,
		ExpiredAt: got.ExpiredAt, ReapedAt: got.ReapedAt,
	}, got)
	requireState(t, s, c.JobID, job.Running)
	require.Empty(t, reap(t, s, 10), "taken over already")

	before := row(t, s, c.JobID)
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.Success)))
	require.Empty(t, renew(t, s, time.Hour, c.Lease))
	lost, err := s.SaveProgress(t.Context(), []job.Report{{Lease: c.Lease, Progress: []byte(`1`)}})
	require.NoError(t, err)
	require.Equal(t, []job.Lease{c.Lease}, lost)
	require.Equal(t, before, row(t, s, c.JobID))

	c.Lease = got.Lease
	settled(t, s, c, job.LeaseExpired)
	requireState(t, s, c.JobID, job.Retry)
	requireState(t, s, alive.JobID, job.Running)
}

func TestAReaperThatDiesIsReapedInTurn(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	first := reap(t, s, 10)[0]
	expire(t, s, first.Lease)
	second := reap(t, s, 10)[0]
	require.NotEqual(t, first.ID, second.ID)
	c.Lease = first.Lease
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.LeaseExpired)))
	c.Lease = second.Lease
	settled(t, s, c, job.LeaseExpired)
	require.Equal(t, worker, ask[string](t, s, "select worker_id from job_attempts"), "the worker that ran it")
}

func TestAReaperKnowsWhetherTheWorkerIsGone(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		enlist func(worker string)
		gone   bool
	}{
		"alive":  {func(w string) { require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: w}, time.Hour)) }, false},
		"silent": {func(w string) { require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: w}, -time.Second)) }, true},
		"heard of last when it had the lease since a moment": {func(w string) {
			require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: w}, time.Hour))
			exec(t, s, "update workers set heartbeat_at = now() - interval '50 s', alive_until = now() + interval '10 s' where worker_id = $1", w)
		}, true},
		"signed off": {func(w string) {
			require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: w}, time.Hour))
			discharge(t, s, w)
		}, true},
		"unknown": {func(string) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			given(t, s)
			claimed, err := s.Claim(t.Context(), name, []string{jobType}, 1, aMinute)
			require.NoError(t, err)
			require.Len(t, claimed, 1)
			c.enlist(name)
			expire(t, s, claimed[0].Lease)
			expired := reap(t, s, 1)
			require.Len(t, expired, 1)
			require.Equal(t, name, expired[0].Worker)
			require.Equal(t, c.gone, expired[0].WorkerGone)
		})
	}
}

func TestAReaperPassesTheCancelOn(t *testing.T) {
	s := open(t)
	c := running(t, s)
	_, err := s.Cancel(t.Context(), c.JobID)
	require.NoError(t, err)
	expire(t, s, c.Lease)
	require.True(t, reap(t, s, 1)[0].CancelRequested)
}

// A reaper that reads a batch of leases and filters it afterwards would never get past
// the live ones (river#1318).
func TestOneExpiredLeaseIsFoundAmongTenThousandLiveOnes(t *testing.T) {
	s := open(t)
	fill(t, s, job.Running, 10_000, "BUSY")
	c := running(t, s)
	expire(t, s, c.Lease)
	expired := reap(t, s, 1)
	require.Len(t, expired, 1)
	require.Equal(t, c.JobID, expired[0].JobID)
	require.Empty(t, reap(t, s, 1))
	requireSound(t, s)
}

func TestReapersDoNotWaitForOneAnother(t *testing.T) {
	s := open(t)
	var leases []job.Lease
	for range 3 {
		c := running(t, s)
		expire(t, s, c.Lease)
		leases = append(leases, c.Lease)
	}
	commit := locked(t, s, "select from leases where job_id = $1 for update", postgres.UUID(leases[0].JobID))
	require.Len(t, reap(t, s, 10), 2)
	commit()
	require.Equal(t, leases[0].JobID, reap(t, s, 10)[0].JobID)
}

func TestAReaperTakesTheOldestExpiryFirstAndNoMoreThanItsLimit(t *testing.T) {
	s := open(t)
	var want []job.ID
	for i := range 5 {
		c := running(t, s)
		exec(t, s, "update leases set expires_at = now() - $2::interval where job_id = $1",
			postgres.UUID(c.JobID), postgres.Interval(time.Duration(10-i)*time.Second))
		want = append(want, c.JobID)
	}
	var got []job.ID
	for range 5 {
		expired := reap(t, s, 1)
		require.Len(t, expired, 1)
		got = append(got, expired[0].JobID)
	}
	require.Equal(t, want, got)
}
