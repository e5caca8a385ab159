package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// replicated is a store on a primary whose commits wait for a standby. It connects
// through a proxy, which leads to the new primary after a failover.
type replicated struct {
	*pgtest.Pair
	proxy *pgtest.Proxy
	s     *Store
}

func replicate(t *testing.T) replicated {
	t.Helper()
	pair := pgtest.NewPair(t)
	proxy := pgtest.Between(t, pair.Primary)
	s, err := Open(t.Context(), Config{URL: proxy.URL, MaxConnections: 20})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	// Each pool has a connection and prepared statements.
	submit(t, s, submission(t, func(j *job.Submission) { j.Type = "WARM" }))
	require.NoError(t, s.RegisterWorker(t.Context(), job.Worker{ID: worker}, aMinute))
	_, err = s.Workers(t.Context())
	require.NoError(t, err)
	return replicated{pair, proxy, s}
}

// failOver promotes the standby and ends every connection to the old primary.
func (r replicated) failOver(t *testing.T) {
	t.Helper()
	r.Promote(t)
	r.proxy.Lead(t, r.Standby)
	r.proxy.Cut()
}

// faults are what can happen to a commit that waits for a stalled standby.
var faults = map[string]func(*testing.T, replicated){
	"reset":     func(_ *testing.T, r replicated) { r.proxy.Cut() },
	"canceled":  func(t *testing.T, r replicated) { t.Helper(); r.CancelWaiting(t) },
	"cut short": func(t *testing.T, r replicated) { t.Helper(); r.TerminateWaiting(t) },
}

func TestASubmissionIsNotAcknowledgedBeforeTheStandbyHasIt(t *testing.T) {
	verbs := map[string]func(*Store, job.Submission) job.Submitted{
		"one": func(s *Store, j job.Submission) job.Submitted { return s.Submit(t.Context(), []job.Submission{j})[0] },
		"all": func(s *Store, j job.Submission) job.Submitted {
			all, err := s.SubmitAll(t.Context(), []job.Submission{j})
			if err != nil {
				return job.Submitted{Err: err}
			}
			return all[0]
		},
	}
	// untilKnown submits as a client does: it repeats the submission with the same key
	// and a new id.
	untilKnown := func(s *Store, send func(*Store, job.Submission) job.Submitted) job.Submitted {
		for {
			done := send(s, submission(t, keyed("k")))
			if !errors.Is(done.Err, job.ErrUnavailable) {
				return done
			}
		}
	}
	for fault, hit := range faults {
		for verb, send := range verbs {
			t.Run(fault+" "+verb, func(t *testing.T) {
				t.Parallel()
				r := replicate(t)
				r.Stall()
				wait := after(func() job.Submitted { return untilKnown(r.s, send) })
				r.AwaitWaiting(t, 1)
				hit(t, r)
				// The store looks it up and sends it again; both wait.
				waitToo := after(func() job.Submitted { return untilKnown(r.s, send) })
				r.AwaitWaiting(t, 2)
				r.failOver(t)
				first, second := wait(), waitToo()
				require.NoError(t, first.Err)
				require.NoError(t, second.Err)
				require.Equal(t, first.Receipt.ID, second.Receipt.ID, "one key, one job")
				now := openAt(t, r.Standby)
				require.Equal(t, 1, ask[int](t, now, "select count(*) from jobs where job_id = $1", postgres.UUID(first.Receipt.ID)))
				require.Equal(t, 2, jobs(t, now))
				requireSound(t, now)
			})
		}
	}
}

// A verb whose commit was canceled has an unknown outcome, whatever it returned.
func TestACommitThatDidNotWaitForTheStandbyIsUnknown(t *testing.T) {
	r := replicate(t)
	running := claimFresh(t, r.s)
	expired := claimFresh(t, r.s)
	expire(t, r.s, expired.Lease)
	held := given(t, r.s, func(j *job.Submission) { j.Hold = true; j.Type = "HELD" })
	dead := claimFresh(t, r.s)
	settled(t, r.s, dead, job.PermanentFailure)
	given(t, r.s)
	given(t, r.s, func(j *job.Submission) { j.Delay = time.Nanosecond; j.Type = "DUE" })
	exec(t, r.s, "update timers set run_at = now() where run_at < 'infinity'")
	r.Stall()
	ctx := t.Context()
	for _, verb := range []struct {
		name string
		do   func() error
	}{
		{"claim", func() error { _, err := r.s.Claim(ctx, worker, []string{jobType}, 1, aMinute); return err }},
		{"renew", func() error { _, err := r.s.Renew(ctx, worker, []job.Lease{running.Lease}, nil, aMinute); return err }},
		{"reap", func() error { _, err := r.s.Reap(ctx, 1, aMinute); return err }},
		{"note", func() error {
			_, err := r.s.SaveProgress(ctx, []job.Report{{Lease: running.Lease, Progress: []byte(`1`)}})
			return err
		}},
		{"settle", func() error { _, err := r.s.Settle(ctx, []job.Settlement{as(running, job.Success)}); return err }},
		{"settle, as it was before", func() error { _, err := r.s.Settle(ctx, []job.Settlement{as(running, job.Success)}); return err }},
		{"settle what is lost", func() error { _, err := r.s.Settle(ctx, []job.Settlement{as(expired, job.Success)}); return err }},
		{"release", func() error { _, err := r.s.Release(ctx, held); return err }},
		{"release what is not held", func() error { _, err := r.s.Release(ctx, held); return err }},
		{"cancel", func() error { _, err := r.s.Cancel(ctx, held); return err }},
		{"cancel what is canceled", func() error { _, err := r.s.Cancel(ctx, held); return err }},
		{"cancel what has succeeded", func() error { _, err := r.s.Cancel(ctx, running.JobID); return err }},
		{"requeue", func() error { _, err := r.s.Requeue(ctx, dead.JobID); return err }},
		{"requeue what is queued", func() error { _, err := r.s.Requeue(ctx, dead.JobID); return err }},
		{"redrive nothing", func() error { _, err := r.s.Redrive(ctx, job.DeadLetterFilter{Limit: 1}); return err }},
		{"disown", func() error { _, err := r.s.ReleaseUnanswered(ctx, worker, nil); return err }},
		{"enlist", func() error { return r.s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute) }},
		{"declare types", func() error { return r.s.DeclareTypes(ctx, specs()) }},
		{"discharge", func() error { _, err := r.s.ExpireWorkers(ctx, []string{worker}); return err }},
	} {
		wait := after(verb.do)
		r.AwaitWaiting(t, 1)
		r.CancelWaiting(t)
		err := wait()
		require.ErrorIs(t, err, job.ErrOutcomeUnknown, verb.name)
		require.ErrorIs(t, err, job.ErrUnavailable, verb.name)
	}
	// The settlement with an unknown outcome was committed, but only on the old primary.
	requireState(t, r.s, running.JobID, job.Succeeded)
	r.failOver(t)
	now := openAt(t, r.Standby)
	requireState(t, now, running.JobID, job.Running)
	settled(t, now, running, job.Success)
	requireSound(t, now)
}

// The server finishes the write, and nobody sees it before.
func TestAWriteIsNotCanceledWhenItsCallerGivesUp(t *testing.T) {
	for name, giveUp := range map[string]func(replicated, context.CancelFunc){
		"its context ends":    func(_ replicated, cancel context.CancelFunc) { cancel() },
		"its connection ends": func(r replicated, cancel context.CancelFunc) { r.proxy.Down.Store(true); r.proxy.Cut(); cancel() },
		"the store is closed": func(r replicated, cancel context.CancelFunc) { cancel(); r.s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := replicate(t)
			direct := openAt(t, r.Primary)
			one := submission(t)
			r.Stall()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait := after(func() error { return r.s.Submit(ctx, []job.Submission{one})[0].Err })
			r.AwaitWaiting(t, 1)
			giveUp(r, cancel)
			err := wait()
			require.ErrorIs(t, err, job.ErrOutcomeUnknown)
			require.ErrorIs(t, errors.Join(err, context.Canceled), context.Canceled)
			r.s.Close()
			r.AwaitWaiting(t, 1)
			require.Equal(t, 1, jobs(t, direct), "it is not seen")
			r.Resume()
			require.Eventually(t, func() bool { return jobs(t, direct) == 2 }, patience, time.Millisecond)
		})
	}
}

// The store gives up connections that lead nowhere, and those to a server that is no
// longer the primary.
func TestAbandonedWritesDoNotKeepAPoolFromWorking(t *testing.T) {
	url := pgtest.URL(t)
	p := pgtest.Between(t, url)
	s, err := Open(t.Context(), Config{URL: p.URL, MaxConnections: 2})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	p.Mute.Store(true)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.Error(t, s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute))
		cancel()
	}
	p.Mute.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute))
}

func TestReadsLeaveAPrimaryThatWasReplacedOnceAWriteIsAbandoned(t *testing.T) {
	r := replicate(t)
	r.Promote(t)
	r.proxy.Lead(t, r.Standby) // open connections stay with the old primary
	id := given(t, openAt(t, r.Standby))
	_, err := r.s.Get(t.Context(), id)
	require.ErrorIs(t, err, job.ErrNotFound, "a stale read")
	ctx, cancel := context.WithCancel(t.Context())
	wait := after(func() error { return r.s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute) })
	r.AwaitWaiting(t, 1)
	cancel()
	require.ErrorIs(t, wait(), job.ErrOutcomeUnknown)
	require.Eventually(t, func() bool {
		_, err := r.s.Get(t.Context(), id)
		return err == nil
	}, patience, time.Millisecond)
}

// One that is given up shows that new connections lead to another server.
func TestNoWriteIsLeftAtAPrimaryThatWasReplaced(t *testing.T) {
	r := replicate(t)
	r.Promote(t)
	r.proxy.Lead(t, r.Standby)
	patient, cancelPatient := context.WithTimeout(t.Context(), patience)
	defer cancelPatient()
	one := submission(t)
	waitLong := after(func() error { return r.s.Submit(patient, []job.Submission{one})[0].Err })
	r.AwaitWaiting(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	wait := after(func() error { return r.s.RegisterWorker(ctx, job.Worker{ID: worker}, aMinute) })
	r.AwaitWaiting(t, 2)
	cancel()
	require.ErrorIs(t, wait(), job.ErrOutcomeUnknown)
	require.NoError(t, waitLong(), "it is accepted by the new primary")
}

func TestAPrimaryThatBecameReadOnlyIsAbandoned(t *testing.T) {
	r := replicate(t)
	r.Promote(t)
	r.proxy.Lead(t, r.Standby)
	demote := connect(t, r.Primary)
	for _, statement := range []string{"alter system set default_transaction_read_only = on", "select pg_reload_conf()"} {
		_, err := demote.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	var err error
	require.Eventually(t, func() bool { // each session learns it at a time of its own
		_, err = r.s.Promote(t.Context(), 1)
		return err != nil
	}, patience, time.Millisecond)
	require.ErrorIs(t, err, job.ErrUnavailable)
	require.NotErrorIs(t, err, job.ErrOutcomeUnknown)
	submit(t, r.s, submission(t))
}

// A claim that waits for the standby shows no lease yet, so ReleaseUnanswered waits
// too.
func TestReleasingUnansweredClaimsWaitsForTheStandby(t *testing.T) {
	r := replicate(t)
	given(t, r.s)
	r.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	claim := after(func() error { _, err := r.s.Claim(ctx, worker, []string{jobType}, 1, aMinute); return err })
	r.AwaitWaiting(t, 1)
	cancel()
	require.ErrorIs(t, claim(), job.ErrOutcomeUnknown)
	disowned := 0
	disown := after(func() error {
		for disowned == 0 {
			n, err := r.s.ReleaseUnanswered(t.Context(), worker, nil)
			if err != nil {
				return err
			}
			disowned += n
		}
		return nil
	})
	r.AwaitWaiting(t, 2)
	r.Resume()
	require.NoError(t, disown())
	require.Equal(t, 1, disowned)
}
