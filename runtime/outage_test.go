package runtime_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestAnOutageShorterThanTheLeaseCostsNothing(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := pgtest.Between(t, db.url)
	const jobs, slots = 300, 20
	ids := many(t, db, jobs, atMost(2))
	// In the middle of the work every slot waits for the outage.
	inOutage := make(chan struct{})
	var waiting atomic.Int32
	s := supervise(t, playing("p", slots, func(r *run) job.Outcome {
		if r.Attempt == 1 && r.JobID[15]%3 == 0 {
			return job.Outcome{Kind: job.Failure}
		}
		if r.Fence == 1 && r.JobID[15]%3 == 1 {
			waiting.Add(1)
			select {
			case <-inOutage:
			case <-r.killed:
			}
		}
		return job.Outcome{Kind: job.Success, Result: []byte(strconv.Itoa(r.Attempt))}
	}, echo))
	launch(t, openAt(t, p.URL), s, leasing(30*time.Second))
	await(t, func() bool { return waiting.Load() == slots })

	p.Down.Store(true)
	p.Cut()
	close(inOutage) // all of them settle into the outage
	await(t, func() bool { return p.Refused.Load() >= 10 }, "the worker tries again")
	require.Positive(t, ask[int](t, db, "select count(*) from leases"), "nothing settles meanwhile")
	p.Down.Store(false)

	awaitAll(t, db, jobs, job.Succeeded)
	for _, id := range ids {
		var want []job.OutcomeKind
		if id[15]%3 == 0 {
			want = append(want, job.Failure)
		}
		want = append(want, job.Success)
		got := outcomes(t, db, id)
		for len(got) > 0 && got[0] == job.Interrupted { // a claim whose answer was lost
			got = got[1:]
		}
		require.Equal(t, want, got)
		require.Equal(t, len(want), charged(t, db, id))
	}
	require.Equal(t, ask[int](t, db, "select count(*) from job_attempts where outcome <> 'interrupted'"), len(s.started()))
	requireSettled(t, db)
}

// apart claims through a connection of its own.
type apart struct {
	runtime.Store
	claims *store.Store
	before func()
}

func (a apart) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	a.before()
	return a.claims.Claim(ctx, worker, types, limit, lease)
}

func TestJobsWhoseClaimWasNotAnsweredAreReleasedUncharged(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := pgtest.Between(t, db.url)
	claims := openAt(t, p.URL)
	const jobs = 10
	ids := many(t, db, jobs)
	// The pool knows a connection and the statement before it goes wrong, just before: it tries
	// a connection that was idle for a second, and would find out.
	var known error
	goWrong := sync.OnceFunc(func() {
		_, known = claims.Claim(t.Context(), "nobody", []string{"NOTHING"}, jobs, time.Minute)
		p.Mute.Store(true)
	})
	s := supervise(t, playing("p", jobs, succeeds, echo))
	launch(t, apart{Store: db, claims: claims, before: goWrong}, s, func(c *runtime.Config) {
		// Long enough that nothing is recovered by waiting, while the reaper
		// looks every two seconds.
		c.Lease = 12 * time.Second
	})
	await(t, func() bool { return ask[int](t, db, "select count(*) from leases") == jobs }, "the claim is to arrive")
	require.NoError(t, known)
	require.Empty(t, s.started())
	p.Mute.Store(false)
	p.Cut()
	awaitAll(t, db, jobs, job.Succeeded)
	for _, id := range ids {
		require.Equal(t, []job.OutcomeKind{job.Interrupted, job.Success}, outcomes(t, db, id))
		require.Equal(t, 1, charged(t, db, id))
	}
	require.Len(t, s.started(), jobs)
	requireSettled(t, db)
}

// A stalled connection must not hang a loop.
func TestEveryCallToTheDatabaseHasADeadline(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	var mu sync.Mutex
	seen, endless := make(map[string]bool), make(map[string]bool)
	failing := true
	ledger := &hooked{Store: db, called: func(ctx context.Context, verb string) {
		mu.Lock()
		defer mu.Unlock()
		seen[verb] = true
		if _, bounded := ctx.Deadline(); !bounded {
			endless[verb] = true
		}
	}, claimed: func(err error) error {
		mu.Lock()
		defer mu.Unlock()
		if failing { // so that what it may have brought is let go
			failing = false
			return job.ErrUnavailable
		}
		return err
	}}
	given(t, db)
	holding(t, db, enlisted(t, db, aLongTime, processDied), aLongTime) // to be expired, and its job reaped
	s := supervise(t, playing("p", 5, func(r *run) job.Outcome {
		r.Progress([]byte("1"))
		return job.Outcome{Kind: job.Success}
	}, echo))
	p := launch(t, ledger, s, leasing(time.Second))
	_, err := p.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	want := []string{
		"claim", "renew", "settle", "note", "reap", "promote", "next due", "submit",
		"surroundings", "expire workers", "release unanswered", "send",
	}
	await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, verb := range want {
			if !seen[verb] {
				return false
			}
		}
		return true
	}, "every verb is to be called")
	awaitAll(t, db, 2, job.Succeeded)
	p.drain()
	p.awaitEnd(t)
	delete(endless, "describe worker") // in Prepare, under its caller's context
	require.Empty(t, endless)
}
