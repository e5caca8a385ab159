package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// behindProxy returns a store whose connections go through a proxy, and a store that
// reaches the same database directly. The pools that submit and settle already have an
// open connection, so that the proxy does not disturb connecting.
func behindProxy(t *testing.T) (*pgtest.Proxy, *Store, *Store) {
	t.Helper()
	url := pgtest.URL(t)
	p := pgtest.Between(t, url)
	s := openAt(t, p.URL)
	submit(t, s, submission(t, func(j *job.Submission) { j.Type = "WARM" })) // statements are prepared
	_, err := s.Reap(t.Context(), 1, aMinute)
	require.NoError(t, err)
	return p, s, openAt(t, url)
}

func TestASubmissionWhoseAnswerIsLostMakesOneJob(t *testing.T) {
	for name, change := range map[string]func(*job.Submission){
		"without a key": func(*job.Submission) {},
		"with a key":    func(j *job.Submission) { j.IdempotencyKey = "k" },
		"scheduled":     func(j *job.Submission) { j.Delay = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			p, s, direct := behindProxy(t)
			batch := append([]job.Submission{submission(t, change)}, submissions(t, 9)...)
			p.LoseAnswers.Store(1)
			done := s.Submit(t.Context(), batch)
			require.Zero(t, p.LoseAnswers.Load(), "an answer was lost")
			for i := range batch {
				require.NoError(t, done[i].Err)
				require.Equal(t, batch[i].ID, done[i].Receipt.ID)
				require.False(t, done[i].Receipt.Replayed)
			}
			require.Equal(t, 1+len(batch), ask[int](t, direct, "select count(*) from jobs"))
			requireSound(t, direct)
		})
	}
}

func TestASubmissionWhoseRequestIsLostMakesOneJob(t *testing.T) {
	p, s, direct := behindProxy(t)
	p.LoseRequests.Store(1)
	batch := submissions(t, 10)
	for _, done := range s.Submit(t.Context(), batch) {
		require.NoError(t, done.Err)
	}
	require.Zero(t, p.LoseRequests.Load())
	require.Equal(t, 1+len(batch), ask[int](t, direct, "select count(*) from jobs"))
}

// A replay inserts nothing, so its id is never found, and it is sent again.
func TestAReplayWhoseAnswerIsLostIsAnsweredInTheEnd(t *testing.T) {
	p, s, direct := behindProxy(t)
	keyed := func(j *job.Submission) { j.IdempotencyKey = "k" }
	first := submit(t, s, submission(t, keyed))[0]
	p.LoseAnswers.Store(1)
	done := s.Submit(t.Context(), []job.Submission{submission(t, keyed)})[0]
	require.NoError(t, done.Err)
	require.Equal(t, first, done.Receipt.ID)
	require.Zero(t, p.LoseAnswers.Load())
	require.Equal(t, 2, ask[int](t, direct, "select count(*) from jobs"))
}

func TestASettlementWhoseAnswerIsLostIsSettledAtTheSecondTry(t *testing.T) {
	p, s, direct := behindProxy(t)
	for _, verb := range settleVerbs {
		t.Run(verb.statement, func(t *testing.T) {
			c := claimFresh(t, direct)
			settlement := as(c, job.Failure)
			if settlement.To = verb.to; verb.to == job.Queued {
				settlement.Attempt = 0
			}
			// Settle a lost job first, so that the statement is prepared on this connection.
			warm := settlement
			warm.JobID = newID(t)
			require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, warm))

			p.LoseAnswers.Store(1)
			_, err := s.Settle(t.Context(), []job.Settlement{settlement})
			require.ErrorIs(t, err, job.ErrUnavailable)
			require.Zero(t, p.LoseAnswers.Load())
			before := row(t, direct, c.JobID)
			require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
			require.Equal(t, before, row(t, direct, c.JobID), "written once")
			requireState(t, direct, c.JobID, verb.to)
		})
	}
}

// Between the lost answer and the second try, another worker runs the job. The lease
// still shows that the first attempt was settled.
func TestASettlementIsKnownByItsLeaseEvenWhenTheJobRunsAgain(t *testing.T) {
	p, s, direct := behindProxy(t)
	c := claimFresh(t, direct)
	p.LoseAnswers.Store(1)
	_, err := s.Settle(t.Context(), []job.Settlement{as(c, job.Released)})
	require.ErrorIs(t, err, job.ErrUnavailable)
	direct.marks = newLowWaterMarks()
	again, err := direct.Claim(t.Context(), other, []string{c.Type}, 1, aMinute)
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, as(c, job.Released)))
	settled(t, direct, again[0], job.Success)
}

func TestWithoutADatabaseEveryVerbSaysUnavailable(t *testing.T) {
	p, s, _ := behindProxy(t)
	p.Down.Store(true)
	p.Cut()
	for name, verb := range verbs(t, s) {
		err := verb(t.Context())
		require.ErrorIs(t, err, job.ErrUnavailable, name)
	}
	p.Down.Store(false)
	require.Eventually(t, func() bool { return s.Ping(t.Context()) == nil }, patience, time.Millisecond)
	for name, verb := range verbs(t, s) {
		if err := verb(t.Context()); err != nil {
			require.ErrorIs(t, err, job.ErrNotFound, name)
		}
	}
}

func TestOpeningWithoutADatabaseSaysUnavailable(t *testing.T) {
	p := pgtest.Between(t, pgtest.URL(t))
	p.Down.Store(true)
	_, err := Open(t.Context(), Config{URL: p.URL})
	require.ErrorIs(t, err, job.ErrUnavailable)
	_, err = Open(t.Context(), Config{URL: "postgres://%zz"})
	require.ErrorContains(t, err, "read database URL")
}

// Whenever its context ends, a call returns its connection or closes it.
func TestCanceledContextsLeakNoConnections(t *testing.T) {
	s := open(t)
	all := verbs(t, s)
	requireNoneTaken := func(name string) {
		t.Helper()
		require.Eventually(t, func() bool {
			var taken int32
			for _, pool := range pools(s) {
				taken += pool.Stat().AcquiredConns()
			}
			return taken == 0
		}, patience, time.Millisecond, name)
	}
	for name, verb := range all {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, verb(over), context.Canceled, name)
		requireNoneTaken(name)

		// While the statement waits for its locks.
		commit := locked(t, s, "lock table jobs, ready, leases, timers, dead_letters, unsuccessful_attempts, job_types, workers in access exclusive mode")
		ctx, cancel := context.WithCancel(t.Context())
		wait := after(func() error { return verb(ctx) })
		waiting := aside(t, urlOf(s))
		require.Eventually(t, func() bool {
			var n int
			err := waiting.QueryRow(t.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n)
			return err == nil && n > 0
		}, patience, time.Millisecond, name)
		cancel()
		require.ErrorIs(t, wait(), context.Canceled, name)
		commit()
		requireNoneTaken(name)

		// At a random moment.
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
			if err := verb(ctx); err != nil {
				require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, job.ErrNotFound), "%s: %v", name, err)
			}
			cancel()
		}
		requireNoneTaken(name)
	}
	requireSound(t, s)
}

// verbs contains a call of each method of the store that takes plain arguments.
func verbs(t testing.TB, s *Store) map[string]func(context.Context) error {
	id := newID(t)
	lease := job.Lease{JobID: id, ID: job.LeaseID(newID(t)), Fence: 1}
	c := job.Claimed{Lease: lease, Attempt: 1, MaxAttempts: 4}
	return map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error { return s.Submit(ctx, []job.Submission{submission(t)})[0].Err },
		"claim": func(ctx context.Context) error {
			_, err := s.Claim(ctx, worker, []string{jobType}, 1, aMinute)
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, worker, []job.Lease{lease}, nil, aMinute)
			return err
		},
		"settle": func(ctx context.Context) error {
			_, err := s.Settle(ctx, []job.Settlement{as(c, job.Success), as(c, job.Failure)})
			return err
		},
		"note": func(ctx context.Context) error {
			_, err := s.SaveProgress(ctx, []job.Report{{Lease: lease}})
			return err
		},
		"reap":     func(ctx context.Context) error { _, err := s.Reap(ctx, 1, aMinute); return err },
		"promote":  func(ctx context.Context) error { _, err := s.Promote(ctx, 1); return err },
		"next due": func(ctx context.Context) error { _, _, err := s.NextDue(ctx); return err },
		"outlook":  func(ctx context.Context) error { _, err := s.Outlook(ctx, aMinute); return err },
		"unserved": func(ctx context.Context) error { _, err := s.Unserved(ctx, aMinute); return err },
		"cancel":   func(ctx context.Context) error { _, err := s.Cancel(ctx, id); return err },
		"release":  func(ctx context.Context) error { _, err := s.Release(ctx, id); return err },
		"requeue":  func(ctx context.Context) error { _, err := s.Requeue(ctx, id); return err },
		"redrive":  func(ctx context.Context) error { _, err := s.Redrive(ctx, job.DeadLetterFilter{Limit: 1}); return err },
		"get":      func(ctx context.Context) error { _, err := s.Get(ctx, id); return err },
		"dead letters": func(ctx context.Context) error {
			_, err := s.DeadLetters(ctx, job.DeadLetterFilter{Limit: 1})
			return err
		},
		"declare types":   func(ctx context.Context) error { return s.DeclareTypes(ctx, specs()) },
		"types":           func(ctx context.Context) error { _, err := s.Types(ctx); return err },
		"catalog":         func(ctx context.Context) error { _, err := s.Catalog(ctx); return err },
		"enlist":          func(ctx context.Context) error { return s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute) },
		"describe worker": func(ctx context.Context) error { return s.DescribeWorker(ctx, worker, []byte(`[]`)) },
		"surroundings":    func(ctx context.Context) error { _, err := s.Surroundings(ctx, "h", worker); return err },
		"discharge":       func(ctx context.Context) error { _, err := s.ExpireWorkers(ctx, []string{worker}); return err },
	}
}
