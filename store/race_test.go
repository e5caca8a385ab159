package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// A reaper and a settle compete for one lease, in both orders: the second finds it
// gone, and the job ends once.
func TestASettleBehindAReaperIsLost(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	commit := locked(t, s, sql.Text("reap"), 10, postgres.Interval(aMinute))
	wait := after(func() []job.SettleResult { return tryToSettle(t, s, as(c, job.Success)) })
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.SettleResult{job.Lost}, wait())
	requireState(t, s, c.JobID, job.Running)
	require.Zero(t, ask[int](t, s, "select count(*) from job_attempts"))
}

func TestAReaperPassesByWhatIsBeingSettled(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	commit := locked(t, s, sql.Text("succeed"), succeedColumns([]*job.Settlement{new(as(c, job.Success))})...)
	require.Empty(t, reap(t, s, 10), "it neither waits nor takes over")
	commit()
	require.Empty(t, reap(t, s, 10))
	requireState(t, s, c.JobID, job.Succeeded)
}

func TestAReaperLeavesAloneWhatWasRenewedMeanwhile(t *testing.T) {
	s := open(t)
	c := running(t, s)
	exec(t, s, "update leases set expires_at = now() - interval '1 second'")
	commit := locked(t, s, "update leases set expires_at = now() + interval '1 minute'")
	require.Empty(t, reap(t, s, 10))
	commit()
	require.Empty(t, reap(t, s, 10))
	settled(t, s, c, job.Success)
}

func TestASettleBehindTheReapersOwnSettleIsLost(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	taken := c
	taken.Lease = reap(t, s, 1)[0].Lease
	commit := locked(t, s, sql.Text("retry"), retryColumns([]*job.Settlement{new(as(taken, job.LeaseExpired))})...)
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.Success)), "it does not even wait")
	commit()
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.Success)))
	requireState(t, s, c.JobID, job.Retry)
}

// The same settlement is sent on two connections at once, as after a connection reset.
func TestASettlementBehindItselfIsSettledOnce(t *testing.T) {
	s := open(t)
	for _, verb := range settleVerbs {
		c := claimFresh(t, s)
		settlement := as(c, job.Failure)
		settlement.To = verb.to
		if verb.to == job.Queued {
			settlement.Attempt = 0
		}
		commit := locked(t, s, sql.Text(verb.statement), verb.columns([]*job.Settlement{&settlement})...)
		wait := after(func() []job.SettleResult { return tryToSettle(t, s, settlement) })
		awaitBlocked(t, s, 1)
		commit()
		require.Equal(t, []job.SettleResult{job.Settled}, wait(), verb.statement)
		require.Equal(t, 1, ask[int](t, s, "select count(*) from job_attempts where job_id = $1", postgres.UUID(c.JobID)), verb.statement)
	}
	requireSound(t, s)
}

func TestACancelBehindARetryFindsTheJobWaiting(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settlement := as(c, job.Failure)
	settlement.Delay = time.Hour
	commit := locked(t, s, sql.Text("retry"), retryColumns([]*job.Settlement{&settlement})...)
	wait := after(func() error {
		_, err := s.Cancel(context.Background(), c.JobID)
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	require.NoError(t, wait())
	requireState(t, s, c.JobID, job.Canceled)
}

func TestARetryBehindACancelIsTurnedAside(t *testing.T) {
	s := open(t)
	c := running(t, s)
	commit := locked(t, s, sql.Text("cancel"), postgres.UUID(c.JobID))
	wait := after(func() []job.SettleResult { return tryToSettle(t, s, as(c, job.Failure)) })
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.SettleResult{job.Canceling}, wait())
	requireState(t, s, c.JobID, job.Running)
}

// Ten thousand settlements, renewals and reports run in overlapping, shuffled batches
// on several connections. All statements lock in job order, so nothing deadlocks and
// each job is settled once.
func TestShuffledOverlappingBatchesDoNotDeadlock(t *testing.T) {
	url := pgtest.URL(t)
	s := openAt(t, url)
	const jobs, connections, rounds, size = 500, 4, 25, 100
	submit(t, s, submissions(t, jobs, func(j *job.Submission) { j.Delay = -time.Second })...)
	claimed := claim(t, s, jobs)
	require.Len(t, claimed, jobs)

	var all sync.WaitGroup
	for n := range connections {
		random := rand.New(rand.NewPCG(7, uint64(n)))
		all.Go(func() {
			ctx := context.Background()
			for round := range rounds {
				random := random.Perm(jobs)[:size]
				leases, notes := make([]job.Lease, size), make([]job.Report, size)
				settlements := make([]job.Settlement, 0, size)
				for i, at := range random {
					leases[i] = claimed[at].Lease
					notes[i] = job.Report{Lease: leases[i], Progress: []byte(`1`)}
					// Each round settles one in ten, so that enough are left.
					if i%10 == 0 || round > rounds-5 {
						settlements = append(settlements, as(claimed[at], job.OutcomeKinds()[at%3]))
					}
				}
				if _, err := s.Renew(ctx, worker, leases, nil, aMinute); err != nil {
					t.Error(err)
				}
				if _, err := s.SaveProgress(ctx, notes); err != nil {
					t.Error(err)
				}
				fates, err := s.Settle(ctx, settlements)
				if err != nil {
					t.Error(err)
				}
				for _, fate := range fates {
					if fate != job.Settled {
						t.Errorf("fate %s", fate)
					}
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, deadlocks(t, s))
	ended := ask[int](t, s, "select count(*) from job_attempts")
	require.Equal(t, ended, ask[int](t, s, "select count(distinct job_id) from job_attempts"), "each attempt ended once")
	require.Equal(t, jobs, ended+ask[int](t, s, "select count(*) from leases"))
	requireSound(t, s)
}

// A repeated batch locks ledger rows by key, and a settle locks them by job. They may
// deadlock, but callers must not notice.
func TestALostDeadlockIsNotNoticed(t *testing.T) {
	keyed := func(j *job.Submission) { j.IdempotencyKey = j.ID.String() }
	for name, prepare := range map[string]func(*testing.T, *Store, []job.Submission) func() error{
		"submit": func(_ *testing.T, s *Store, batch []job.Submission) func() error {
			return func() error {
				done := s.Submit(context.Background(), batch)
				return errors.Join(done[0].Err, done[1].Err)
			}
		},
		"settle": func(t *testing.T, s *Store, _ []job.Submission) func() error {
			claimed := claim(t, s, 2)
			return func() error {
				_, err := s.Settle(context.Background(), []job.Settlement{as(claimed[0], job.Success), as(claimed[1], job.Success)})
				return err
			}
		},
		"note": func(t *testing.T, s *Store, _ []job.Submission) func() error {
			claimed := claim(t, s, 2)
			return func() error {
				_, err := s.SaveProgress(context.Background(), []job.Report{{Lease: claimed[0].Lease}, {Lease: claimed[1].Lease}})
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quickToSeeDeadlocks(t)
			batch := submissions(t, 2, keyed)
			ids := submit(t, s, batch[0], batch[1])
			verb := prepare(t, s, batch)

			const lock = "select from jobs where job_id = $1 for update"
			tx, err := connect(t, urlOf(s)).Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "set local deadlock_timeout = '1min'")
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), lock, postgres.UUID(ids[1]))
			require.NoError(t, err)
			wait := after(verb)
			awaitBlocked(t, s, 1) // it has the first and waits for the second
			_, err = tx.Exec(t.Context(), lock, postgres.UUID(ids[0]))
			require.NoError(t, err, "the verb is the one to lose")
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, wait())
			require.Positive(t, deadlocks(t, s), "it did lose one, or several")
			requireSound(t, s)
		})
	}
}

// A claim whose commit was lost holds leases that nobody knows of. They expire like
// others.
func TestAClaimThatNobodyHeardOfIsReaped(t *testing.T) {
	s := open(t)
	id := given(t, s)
	locked(t, s, sql.Text("claim"), claiming(1, 0)...)()
	expired := reap(t, s, 10)
	require.Len(t, expired, 1)
	require.Equal(t, id, expired[0].JobID)
}

func tryToSettle(t testing.TB, s *Store, batch ...job.Settlement) []job.SettleResult {
	fates, err := s.Settle(context.Background(), batch)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	return fates
}

// quickToSeeDeadlocks returns a store whose server detects deadlocks quickly.
func quickToSeeDeadlocks(t *testing.T) *Store {
	t.Helper()
	first := open(t)
	if !ask[bool](t, first, "select rolsuper from pg_roles where rolname = current_user") {
		t.Skip("only a superuser may set deadlock_timeout")
	}
	exec(t, first, "do $$ begin execute format('alter database %I set deadlock_timeout = 500', current_database()); end $$")
	first.Close()
	return openAt(t, urlOf(first))
}

// deadlocks returns how many deadlocks the server has counted in this database. A
// backend reports its own when it ends.
func deadlocks(t testing.TB, s *Store) int {
	t.Helper()
	for _, pool := range pools(s) {
		pool.Reset()
	}
	outside := aside(t, urlOf(s))
	require.Eventually(t, func() bool {
		var left int
		err := outside.QueryRow(t.Context(), `select count(*) from pg_stat_activity
			where datname = current_database() and application_name like 'holdfast%'`).Scan(&left)
		return err == nil && left == 0
	}, patience, time.Millisecond)
	var count int
	require.NoError(t, outside.QueryRow(t.Context(), "select deadlocks from pg_stat_database where datname = current_database()").Scan(&count))
	return count
}
