package store

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// A claim takes a job off the ready list while a cancel waits for its row: the cancel looks
// again, and no slot is freed twice.
func TestACancelBehindAClaimAsksTheOwner(t *testing.T) {
	s := open(t)
	id := admitted(t, s, gated(keyGate))
	commit := locked(t, s, sql.Text("claim"), claiming(1, aMinute)...)
	wait := after(func() job.Cancellation { return tryToCancel(t, s, id) })
	awaitBlocked(t, s, 1)
	commit()
	canceled := wait()
	require.True(t, canceled.Requested)
	require.False(t, canceled.Freed)
	require.Empty(t, wakes(t, s))
	requireState(t, s, id, job.Running)
}

// An admitter puts a job on the ready list while a cancel waits for its row.
func TestACancelBehindAnAdmissionFreesTheSlot(t *testing.T) {
	s := open(t)
	id := given(t, s, gated(keyGate))
	commit := locked(t, s, `with moved as (delete from parked returning *)
		insert into ready (job_id, job_type, urgency, run_at) select job_id, job_type, urgency, position from moved`)
	wait := after(func() job.Cancellation { return tryToCancel(t, s, id) })
	awaitBlocked(t, s, 1)
	commit()
	canceled := wait()
	require.True(t, canceled.Canceled)
	require.True(t, canceled.Freed)
	require.ElementsMatch(t, []wake{touched(keyGate), freed(keyGate)}, wakes(t, s))
	requireState(t, s, id, job.Canceled)
}

// A job is moved to another lane while a cancel waits for its row.
func TestACancelBehindAMoveToAnotherLaneFindsTheJob(t *testing.T) {
	s := open(t)
	id := given(t, s, gated(keyGate, typeGate))
	commit := locked(t, s, "update parked set lane = $1", string(typeGate))
	wait := after(func() job.Cancellation { return tryToCancel(t, s, id) })
	awaitBlocked(t, s, 1)
	commit()
	require.True(t, wait().Canceled)
	requireState(t, s, id, job.Canceled)
}

// A job is parked by its owner while its cancel is requested, in both orders.
func TestACancelBehindAParkingFindsTheJobParked(t *testing.T) {
	s := open(t)
	c := admittedRunning(t, s, gated(keyGate))
	commit := locked(t, s, sql.Text("park_claim"), parkColumns([]job.Parking{{Lease: c.Lease, Gates: []job.Gate{typeGate}}})...)
	wait := after(func() job.Cancellation { return tryToCancel(t, s, c.JobID) })
	awaitBlocked(t, s, 1)
	commit()
	require.True(t, wait().Canceled)
	require.ElementsMatch(t, []wake{freed(keyGate), touched(typeGate)}, wakes(t, s))
	requireState(t, s, c.JobID, job.Canceled)
}

func TestAParkingBehindACancelIsTurnedAside(t *testing.T) {
	s := open(t)
	c := admittedRunning(t, s, gated(keyGate))
	commit := locked(t, s, sql.Text("cancel"), postgres.UUID(c.JobID))
	wait := after(func() []job.SettleResult {
		fates, err := s.Park(context.Background(), []job.Parking{{Lease: c.Lease, Gates: []job.Gate{typeGate}}})
		if err != nil {
			t.Error(err)
		}
		return fates
	})
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.SettleResult{job.Canceling}, wait())
	require.Empty(t, wakes(t, s))
	requireState(t, s, c.JobID, job.Running)
}

func tryToCancel(t testing.TB, s *Store, id job.ID) job.Cancellation {
	canceled, err := s.Cancel(context.Background(), id)
	if err != nil {
		t.Error(err)
	}
	return canceled
}

// Admitters, claimers and clients who cancel compete for the same jobs, until all have
// ended. Then nothing is left in any list, and every slot is free.
func TestCompetingVerbsLoseNoJobAndNoSlot(t *testing.T) {
	s := open(t)
	const jobs, batch = 400, 50
	limit := 20
	rules := job.NewRules([]job.Limit{
		{Scope: job.LimitType, Name: jobType, Concurrency: &limit},
		{Scope: job.LimitKey, Name: "acct", Concurrency: &limit},
	}, nil)
	var ids []job.ID
	for range jobs / batch {
		ids = append(ids, submit(t, s, submissions(t, batch/2)...)...)
		ids = append(ids, submit(t, s, submissions(t, batch/2, gated(keyGate, typeGate))...)...)
	}
	ctx, all := context.Background(), sync.WaitGroup{}
	var ended atomic.Bool
	compete := func(seed uint64, verb func(*rand.Rand) error) {
		random := rand.New(rand.NewPCG(11, seed))
		all.Go(func() {
			for !ended.Load() {
				if err := verb(random); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range uint64(2) {
		compete(n, func(*rand.Rand) error {
			_, err := s.Admit(ctx, rules)
			return err
		})
		compete(10+n, func(random *rand.Rand) error { return endSome(ctx, s, random) })
		compete(20+n, func(random *rand.Rand) error {
			if random.IntN(4) > 0 {
				_, err := s.Promote(ctx, 10)
				return err
			}
			_, _ = s.Cancel(ctx, ids[random.IntN(jobs)]) // most have ended
			return nil
		})
	}
	require.Eventually(t, func() bool {
		return ask[int](t, s, "select count(*) from jobs where state in ('created', 'queued', 'retry')") == 0 || t.Failed()
	}, patience, patience/200)
	ended.Store(true)
	all.Wait()
	requireSound(t, s)
	requireSlots(ctx, t, s)
	for more := true; more; {
		round, err := s.Admit(ctx, rules)
		require.NoError(t, err)
		more = round.More
	}
	require.Zero(t, ask[int](t, s, "select (select count(*) from parked) + (select count(*) from wakes) + (select coalesce(sum(used), 0) from slots)"))
	require.Zero(t, deadlocks(t, s))
}

// endSome claims a few jobs and ends, releases or parks them.
func endSome(ctx context.Context, s *Store, random *rand.Rand) error {
	claimed, err := s.Claim(ctx, worker, []string{jobType}, 1+random.IntN(5), aMinute)
	if err != nil {
		return err
	}
	var settlements []job.Settlement
	var parkings []job.Parking
	for _, c := range claimed {
		if random.IntN(5) == 0 {
			parkings = append(parkings, job.Parking{Lease: c.Lease, Gates: []job.Gate{keyGate, typeGate}})
			continue
		}
		kinds := []job.OutcomeKind{job.Success, job.Success, job.Success, job.Failure, job.Released, job.PermanentFailure}
		settlements = append(settlements, as(c, kinds[random.IntN(len(kinds))]))
	}
	parked, err := s.Park(ctx, parkings)
	if err != nil {
		return err
	}
	for i, result := range parked {
		if result == job.Canceling {
			settlements = append(settlements, job.Settlement{
				Lease: parkings[i].Lease, Decision: job.Decision{To: job.Canceled, Kind: job.CancelConfirmed, Attempt: 1}, Number: 1,
			})
		}
	}
	results, err := s.Settle(ctx, settlements)
	if err != nil {
		return err
	}
	var canceling []job.Settlement
	for i, result := range results {
		if result == job.Canceling {
			settlement := settlements[i]
			settlement.Decision = job.Decision{To: job.Canceled, Kind: job.CancelConfirmed, Attempt: settlement.Number}
			canceling = append(canceling, settlement)
		}
	}
	_, err = s.Settle(ctx, canceling)
	return err
}

// The edit goes by job, and the round by lane, but both lock in the order of lanes.
func TestAnEditAndARoundDoNotDeadlock(t *testing.T) {
	s := quickToSeeDeadlocks(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 2))
	parks(t, s, rules, job.Terms{ConcurrencyKey: "b"})
	parks(t, s, rules, job.Terms{ConcurrencyKey: "a"})
	last := parks(t, s, rules, job.Terms{ConcurrencyKey: "a"})
	commit := locked(t, s, "select from parked where job_id = $1 for update", postgres.UUID(last))
	round := after(func() error { return admitBy(s, rules) })
	awaitBlocked(t, s, 1)
	priority := int16(5)
	edit := after(func() error {
		_, err := s.EditAll(context.Background(), job.Filter{States: []job.State{job.Queued}, Limit: 10}, job.Edit{Priority: &priority})
		return err
	})
	awaitBlocked(t, s, 2)
	commit()
	require.NoError(t, round())
	require.NoError(t, edit())
	require.Zero(t, deadlocks(t, s))
}

// The round takes those that run longest, and the settle goes by job.
func TestMakingRoomAndASettleDoNotDeadlock(t *testing.T) {
	s := quickToSeeDeadlocks(t)
	rules := limitedBy(altered(concurrency(job.LimitKey, "*", 3), func(l *job.Limit) { l.OnConflict = job.ConflictCancelOldest }))
	var ids []job.ID
	for range 3 {
		ids = append(ids, parks(t, s, rules, job.Terms{ConcurrencyKey: "k"}))
	}
	admitAll(t, s, rules)
	claimed := claim(t, s, 3)
	for i, id := range ids { // the last one is the oldest
		exec(t, s, "update admitted set admitted_at = now() - $2 * interval '1 hour' where job_id = $1", postgres.UUID(id), i)
	}
	for range 3 {
		parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	}
	commit := locked(t, s, "select from leases where job_id = $1 for update", postgres.UUID(ids[1]))
	round := after(func() error { return admitBy(s, rules) })
	awaitBlocked(t, s, 1)
	var batch []job.Settlement
	for _, one := range claimed {
		if one.JobID != ids[1] {
			batch = append(batch, as(one, job.Success))
		}
	}
	settle := after(func() error {
		_, err := s.Settle(context.Background(), batch)
		return err
	})
	awaitBlocked(t, s, 2)
	commit()
	require.NoError(t, round())
	require.NoError(t, settle())
	require.Zero(t, deadlocks(t, s))
}

func admitBy(s *Store, rules *job.Rules) error {
	_, err := s.Admit(context.Background(), rules)
	return err
}
