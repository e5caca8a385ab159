package store

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func renew(t testing.TB, s *Store, lease time.Duration, leases ...job.Lease) []job.Renewed {
	t.Helper()
	held, err := s.Renew(t.Context(), worker, leases, nil, lease)
	require.NoError(t, err)
	return held
}

// renewing begins a heartbeat that is to wait for somebody, and returns a function that waits for its answer.
func renewing(t testing.TB, s *Store, lease time.Duration, leases ...job.Lease) (wait func() []job.Renewed) {
	t.Helper()
	return after(func() []job.Renewed {
		held, err := s.Renew(context.Background(), worker, leases, nil, lease)
		if err != nil {
			t.Error(err)
		}
		return held
	})
}

func TestARenewalExtendsWhatIsHeldAndLeavesOutWhatIsLost(t *testing.T) {
	s := open(t)
	held, lost, settledBefore := running(t, s), running(t, s), running(t, s)
	expire(t, s, lost.Lease)
	settled(t, s, settledBefore, job.Success)
	stale := held.Lease
	stale.ID = job.LeaseID(newID(t))

	got := renew(t, s, time.Hour, lost.Lease, held.Lease, settledBefore.Lease, stale)
	require.Equal(t, []job.Renewed{{ID: held.ID}}, got)
	require.True(t, ask[bool](t, s, "select expires_at between now() + interval '59 minutes' and now() + interval '1 hour' from leases where job_id = $1", postgres.UUID(held.JobID)))
	require.True(t, ask[bool](t, s, "select expires_at < now() from leases where job_id = $1", postgres.UUID(lost.JobID)), "the lost one is not revived")
	requireSound(t, s)
}

func TestARenewalReturnsTheJobsToCancel(t *testing.T) {
	s := open(t)
	one, two := running(t, s), running(t, s)
	_, err := s.Cancel(t.Context(), two.JobID)
	require.NoError(t, err)
	require.ElementsMatch(t, []job.Renewed{{ID: one.ID}, {ID: two.ID, CancelRequested: true}},
		renew(t, s, aMinute, one.Lease, two.Lease))
}

func TestARenewalKeepsTheWorkerAliveEvenWithoutLeases(t *testing.T) {
	s := open(t)
	require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: worker, Host: "h", PID: 1}, 0))
	require.Empty(t, renew(t, s, time.Hour))
	require.True(t, ask[bool](t, s, "select alive_until > now() + interval '59 minutes' from workers"))
}

// A heartbeat that waited for a row lock until after the expiry must find the lease
// expired. Otherwise it would take back a job that another worker may own by now.
func TestARenewalThatWaitedPastTheExpiryDoesNotReviveTheLease(t *testing.T) {
	s := open(t)
	early, late := running(t, s), running(t, s)
	exec(t, s, "update leases set expires_at = clock_timestamp() + interval '300 milliseconds' where job_id = $1", postgres.UUID(late.JobID))
	commit := locked(t, s, "select from leases where job_id = $1 for update", postgres.UUID(late.JobID))
	wait := renewing(t, s, aMinute, late.Lease, early.Lease)
	awaitBlocked(t, s, 1)
	require.Eventually(t, func() bool {
		return ask[bool](t, s, "select expires_at < clock_timestamp() from leases where job_id = $1", postgres.UUID(late.JobID))
	}, patience, 5*time.Millisecond)
	commit()
	require.Equal(t, []job.Renewed{{ID: early.ID}}, wait())
	require.Equal(t, late.JobID, reap(t, s, 10)[0].JobID)
}

func TestARenewalBehindATakeoverFindsTheLeaseLost(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	findsItsLeaseTaken(t, s, c.Lease)
}

// findsItsLeaseTaken: the heartbeat that names these leases waits for a reaper, which takes the only one there is.
func findsItsLeaseTaken(t *testing.T, s *Store, named ...job.Lease) {
	t.Helper()
	commit := locked(t, s, sql.Text("reap"), 10, postgres.Interval(aMinute))
	wait := renewing(t, s, time.Hour, named...)
	awaitBlocked(t, s, 1)
	commit()
	require.Empty(t, wait())
	require.True(t, ask[bool](t, s, "select not kept and expires_at < now() + interval '2 minutes' from leases"), "the reaper's lease stands")
}

// A job that runs for ten times the length of its lease is one attempt. The
// time between heartbeats passes by moving the expiry, not by waiting.
func TestAJobOfTenLeaseLengthsIsOneAttempt(t *testing.T) {
	s := open(t)
	const lease, between = 30 * time.Second, 10 * time.Second
	id := given(t, s)
	claimed, err := s.Claim(t.Context(), worker, []string{jobType}, 1, lease)
	require.NoError(t, err)
	for passed := time.Duration(0); passed < 10*lease; passed += between {
		exec(t, s, "update leases set expires_at = expires_at - $1::interval", postgres.Interval(between))
		require.Empty(t, reap(t, s, 10))
		require.Len(t, renew(t, s, lease, claimed[0].Lease), 1)
	}
	settled(t, s, claimed[0], job.Success)
	requireState(t, s, id, job.Succeeded)
	require.Equal(t, 1, ask[int](t, s, "select count(*) from job_attempts"))
	require.Equal(t, int64(1), ask[int64](t, s, "select fence from jobs"))
}
