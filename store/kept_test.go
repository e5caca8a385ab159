package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// keeping is a running job of a worker that has renewed its lease for a minute.
func keeping(t testing.TB, s *Store) job.Claimed {
	t.Helper()
	require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: worker, Host: "h", PID: 1, Roles: job.AllRoles()}, aMinute))
	c := running(t, s)
	c.Began = sinceClaim(1)
	require.Contains(t, renew(t, s, aMinute, c.Lease), job.Renewed{ID: c.ID, Kept: true})
	return c
}

// silent has the worker beat for the last time so long ago that it counts as gone since a second.
func silent(t testing.TB, s *Store) {
	t.Helper()
	exec(t, s, "update workers set alive_until = now() - interval '1 second', heartbeat_at = now() - interval '61 seconds'")
}

// leaseExpired is what all processes are told.
func leaseExpired(t testing.TB, s *Store) bool {
	t.Helper()
	found, err := s.Surroundings(t.Context(), "here", worker)
	require.NoError(t, err)
	return found.LeaseExpired
}

func stillKept(t testing.TB, s *Store) bool { return ask[bool](t, s, "select kept from leases") }

func TestALeaseIsKeptOnceItsHandlerHasBegun(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	waits := running(t, s)
	require.ElementsMatch(t, []job.Renewed{{ID: c.ID, Kept: true}, {ID: waits.ID}}, renew(t, s, time.Hour, waits.Lease))
	require.Equal(t, []job.Renewed{{ID: c.ID, Kept: true}}, renew(t, s, 2*time.Hour))
	require.WithinDuration(t, time.Now().Add(2*time.Hour), detail(t, s, c.JobID).Lease.ExpiresAt, time.Minute)
	require.False(t, leaseExpired(t, s))
	require.Empty(t, reap(t, s, 10))
	requireSound(t, s)
}

// Such as a lease that a reaper has taken over, which has the name of its worker still.
func TestALeaseOfAnotherWorkerIsNotKept(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	exec(t, s, "update leases set kept = false, worker_id = 'other'")
	require.Equal(t, []job.Renewed{{ID: c.ID}}, renew(t, s, aMinute, c.Lease))
	exec(t, s, "update leases set kept = true")
	require.Empty(t, renew(t, s, aMinute, c.Lease))
}

func TestAHeartbeatSaysWhichKeptLeasesAreToBeCanceled(t *testing.T) {
	s := open(t)
	one := keeping(t, s)
	two := keeping(t, s)
	_, err := s.Cancel(t.Context(), two.JobID)
	require.NoError(t, err)
	require.ElementsMatch(t, []job.Renewed{{ID: one.ID, Kept: true}, {ID: two.ID, CancelRequested: true, Kept: true}}, renew(t, s, aMinute))
}

func TestAKeptLeaseExpiresWithItsWorker(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	silent(t, s)
	until := ask[time.Time](t, s, "select alive_until from workers")
	require.True(t, leaseExpired(t, s))
	taken := reap(t, s, 10)
	require.Len(t, taken, 1)
	require.Equal(t, c.JobID, taken[0].JobID)
	require.True(t, taken[0].WorkerGone)
	require.WithinDuration(t, until, taken[0].ExpiredAt, 0)
	require.False(t, stillKept(t, s))
	require.Empty(t, renew(t, s, aMinute, c.Lease), "it is another's now")
	require.Empty(t, reap(t, s, 10), "the reaper has it for a minute")
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.Success)))
	requireSound(t, s)
}

// A worker whose row is gone cannot come back.
func TestAKeptLeaseOfAnUnknownWorkerHasExpired(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	exec(t, s, "delete from workers")
	require.True(t, leaseExpired(t, s))
	require.Empty(t, renew(t, s, aMinute, c.Lease))
	require.Equal(t, c.JobID, reap(t, s, 10)[0].JobID)
}

func TestAWorkerThatComesBackHasLostWhatItKept(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	silent(t, s)
	until := ask[time.Time](t, s, "select alive_until from workers")
	require.Empty(t, renew(t, s, aMinute), "nobody has taken it over, but anybody may")
	require.Empty(t, renew(t, s, aMinute, c.Lease))
	taken := reap(t, s, 10)
	require.Len(t, taken, 1)
	require.WithinDuration(t, until, taken[0].ExpiredAt, 0)
}

func TestAKeptLeaseThatItsWorkerHasForgottenExpires(t *testing.T) {
	s := open(t)
	known, forgotten := keeping(t, s), keeping(t, s)
	held, err := s.Renew(t.Context(), worker, nil, []job.LeaseID{forgotten.ID}, aMinute)
	require.NoError(t, err)
	require.Equal(t, []job.Renewed{{ID: known.ID, Kept: true}}, held)
	taken := reap(t, s, 10)
	require.Len(t, taken, 1)
	require.Equal(t, forgotten.JobID, taken[0].JobID)
	require.False(t, taken[0].WorkerGone)
}

func TestAReaperLeavesAloneWhoIsAboutToBeat(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	silent(t, s)
	commit := locked(t, s, "update workers set alive_until = now() + interval '1 minute'")
	require.Empty(t, reap(t, s, 10), "it neither waits nor takes over")
	commit()
	require.Empty(t, reap(t, s, 10))
	settled(t, s, c, job.Success)
}

func TestAHeartbeatBehindATakeoverFindsTheKeptLeaseLost(t *testing.T) {
	s := open(t)
	keeping(t, s)
	silent(t, s)
	findsItsLeaseTaken(t, s)
}

// The first heartbeat commits when its time is over, while the second one waits for it, which began before
// the lease was kept.
func TestAHeartbeatBehindALateOneRevivesNothing(t *testing.T) {
	s := open(t)
	require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: worker, Host: "h", PID: 1}, aMinute))
	c := running(t, s)
	commit := locked(t, s, sql.Text("renew"), []any{
		[]any{postgres.UUID(c.JobID)}, []any{postgres.UUID(c.ID)}, postgres.Interval(200 * time.Millisecond), worker, []int32{1}, []any{},
	}...)
	wait := renewing(t, s, aMinute)
	awaitBlocked(t, s, 1)
	over := time.Now().Add(300 * time.Millisecond)
	require.Eventually(t, func() bool { return ask[bool](t, s, "select clock_timestamp() > $1", over) }, patience, 5*time.Millisecond)
	commit()
	require.Empty(t, wait())
	require.Equal(t, c.JobID, reap(t, s, 10)[0].JobID)
}

// The connection of a heartbeat may be cut or its process stopped when half of its statements have arrived.
func TestWhoIsSilentForTwoLeasesIsGoneWhateverIsLocked(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	silent(t, s)
	commit := locked(t, s, sql.Text("lock_worker"), worker)
	require.Empty(t, reap(t, s, 10), "its heartbeat may be about to commit")
	commit()
	exec(t, s, "update workers set alive_until = now() - interval '61 seconds', heartbeat_at = now() - interval '121 seconds'")
	commit = locked(t, s, sql.Text("lock_worker"), worker)
	require.Equal(t, c.JobID, reap(t, s, 10)[0].JobID)
	commit()
	require.Empty(t, renew(t, s, aMinute))
}

// Orchestrators of earlier versions know only the lease's own expiry.
func TestAKeptLeaseThatIsNamedAgainHasItsOwnExpiryForAnHourMore(t *testing.T) {
	s := open(t)
	c := keeping(t, s)
	exec(t, s, "update leases set expires_at = now() + interval '5 minutes'")
	c.Began = job.SinceClaim{}
	require.Equal(t, []job.Renewed{{ID: c.ID, Kept: true}}, renew(t, s, aMinute, c.Lease))
	require.True(t, ask[bool](t, s, "select expires_at > now() + interval '1 hour' and began_ms = 1 from leases"))
}
