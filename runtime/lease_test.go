package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAJobOfTenLeaseLengthsHasOneAttempt(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const lease = 6 * time.Second // it takes a busy machine most of a second to renew one
	id := given(t, db)
	done := make(chan struct{})
	s := supervise(t, playing("p", 1, until(done), echo))
	launch(t, db, s, leasing(lease))
	r := awaitRun(t, s, 1)
	await(t, func() bool {
		return ask[bool](t, db, "select now() > started_at + $2 from current_jobs where job_id = $1", uuid(id), 10*lease)
	})
	close(done)
	awaitState(t, db, id, job.Succeeded)
	ended := outcomes(t, db, id)
	for ended[0] == job.Released { // a busy machine took so long to start it that it was given back first
		ended = ended[1:]
	}
	require.Equal(t, []job.OutcomeKind{job.Success}, ended)
	require.Empty(t, r.told())
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Greater(t, r.extended, 10, "the process is told of each renewal")
}

// Whatever the rest of the worker does with its connections, heartbeats have
// their own.
func TestLeasesAreRenewedWhileEveryOtherConnectionIsTaken(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const lease = 6 * time.Second // it takes a busy machine most of a second to renew one
	id := given(t, db)
	blocked := many(t, db, 4, ofType("NOBODYS"))
	done := make(chan struct{})
	s := supervise(t, playing("p", 1, until(done), echo))
	launch(t, db, s, leasing(lease))
	r := awaitRun(t, s, 1)

	// A cancel waits for the row that we hold, on each connection of the pool.
	ctx, release := context.WithCancel(t.Context())
	defer release()
	tx, err := db.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select from jobs where job_type = 'NOBODYS' for update")
	require.NoError(t, err)
	for _, id := range blocked {
		go func() {
			for ctx.Err() == nil {
				_, _ = db.Cancel(ctx, id)
			}
		}()
	}
	stuck := func() bool {
		try, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return db.Ping(try) != nil
	}
	await(t, stuck, "the pool is to be taken")
	since := ask[time.Time](t, db, "select clock_timestamp()")
	await(t, func() bool {
		return ask[bool](t, db, "select clock_timestamp() > $1::timestamptz + $2", since, 3*lease)
	})
	await(t, stuck, "the pool is still taken") // but for an instant between two tries
	require.Empty(t, r.told())
	release()
	require.NoError(t, tx.Rollback(t.Context()))
	close(done)
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Success}, outcomes(t, db, id))
}

// Safety over liveness: who cannot prove the lease stops, before anybody else
// can own the job.
func TestAHandlerEndsBeforeALeaseThatCannotBeProven(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]renewal{
		"renewals fail": func(context.Context) ([]job.Renewed, error) { return nil, errors.New("no route") },
		"renewals hang": func(ctx context.Context) ([]job.Renewed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			var sick atomic.Bool
			sick.Store(true)
			ledger := &hooked{Store: db, renew: func(ctx context.Context, renew renewal) ([]job.Renewed, error) {
				if sick.Load() {
					return broken(ctx)
				}
				return renew(ctx)
			}}
			id := given(t, db)
			var heldWhenAsked, heldWhenKilled bool
			held := func() bool {
				return ask[bool](t, db, "select at > clock_timestamp() from "+expiries+" where job_id = $1", uuid(id))
			}
			fenced := func(r *run) job.Outcome {
				<-r.stopped
				heldWhenAsked = held()
				<-r.killed
				heldWhenKilled = held()
				sick.Store(false)
				return job.Outcome{}
			}
			s := supervise(t, playing("p", 1, inTurn(fenced, succeeds), echo))
			// A grace that alone would let the handler outlive its lease.
			launch(t, ledger, s, leasing(20*time.Second), graceful(10*time.Second))
			awaitState(t, db, id, job.Succeeded)
			require.Equal(t, []job.CancelReason{job.CancelLeaseLost}, s.started()[0].told())
			require.True(t, heldWhenAsked, "asked while the lease was held")
			require.True(t, heldWhenKilled, "killed while the lease was held")
			require.Equal(t, []job.OutcomeKind{job.Released, job.Success}, outcomes(t, db, id))
			require.Equal(t, 1, charged(t, db, id))
			require.Equal(t, 1, s.started()[1].Attempt)
			requireSettled(t, db)
		})
	}
}

// late has the first claim that brings something answered so much later.
type late struct {
	runtime.Store
	by   time.Duration
	once sync.Once
}

func (l *late) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	claimed, err := l.Store.Claim(ctx, worker, types, limit, lease)
	if len(claimed) > 0 {
		l.once.Do(func() { time.Sleep(l.by) })
	}
	return claimed, err
}

func TestNoHandlerIsStartedUnderALeaseThatIsAboutToExpire(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t, playing("p", 1, succeeds, echo))
	const lease = 20 * time.Second
	launch(t, &late{Store: db, by: lease * 4 / 5}, s, leasing(lease))
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, []job.OutcomeKind{job.Released, job.Success}, outcomes(t, db, id))
	require.Equal(t, 1, charged(t, db, id))
	require.Len(t, s.started(), 1)
}

func TestATakenLeaseStopsAndFencesOffOnlyItsAttempt(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	done, finish := context.WithCancel(t.Context())
	ids := many(t, db, 2)
	late := func(*run) job.Outcome { // finishes whatever it is told
		<-done.Done()
		return job.Outcome{Kind: job.Success, Result: []byte(`"too late"`)}
	}
	var settled atomic.Int32
	ledger := &hooked{Store: db, settle: func(batch []job.Settlement) { settled.Add(int32(len(batch))) }}
	s := supervise(t, playing("p", 2, late, echo))
	p := launch(t, ledger, s, leasing(aLongTime), graceful(aLongTime))
	awaitRun(t, s, 2)
	took := ask[string](t, db, `update leases set lease_id = gen_random_uuid(), expires_at = now() + interval '1 hour'
		where job_id = $1 returning lease_id::text`, uuid(ids[0]))

	p.CancelAsked() // makes for a heartbeat
	lost, kept := s.started()[0], s.started()[1]
	if lost.JobID != ids[0] {
		lost, kept = kept, lost
	}
	awaitSignal(t, lost.stopped, "the lost attempt to be stopped")
	require.Equal(t, []job.CancelReason{job.CancelLeaseLost}, lost.told())
	finish()
	awaitState(t, db, ids[1], job.Succeeded)
	await(t, func() bool { return settled.Load() == 2 }, "the late one is to try")
	require.Empty(t, kept.told())
	require.Equal(t, job.Running, view(t, db, ids[0]).State)
	require.Nil(t, view(t, db, ids[0]).Result)
	require.Empty(t, outcomes(t, db, ids[0]))
	require.Equal(t, took, ask[string](t, db, "select lease_id::text from leases"))
	requireSound(t, db)
}
