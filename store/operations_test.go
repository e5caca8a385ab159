package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// operation starts an operation, with the count of a preview.
func operation(t testing.TB, s *Store, action job.Action, filter job.Filter, changes ...func(*job.OperationStart)) job.Operation {
	t.Helper()
	if len(filter.States) == 0 {
		filter.States = action.States()
	}
	preview, err := s.PreviewOperation(t.Context(), filter)
	require.NoError(t, err)
	filter.FrozenAt = preview.At
	start := job.OperationStart{Operation: job.Operation{
		ID: newID(t), Action: action, Filter: filter, Rate: job.MaxRate, By: "ops", Reason: "why", Expected: preview.Count,
	}}
	if action == job.ActionEdit {
		start.Priority = new(int16(7))
	}
	for _, change := range changes {
		change(&start)
	}
	o, err := s.StartOperation(t.Context(), start)
	require.NoError(t, err)
	require.Equal(t, job.OperationRunning, o.State)
	require.Equal(t, filter.States, o.Filter.States)
	return o
}

// operateOnce does a portion at once, whatever the rate.
func operateOnce(t testing.TB, s *Store) (job.PortionDone, bool) {
	t.Helper()
	exec(t, s, "update operations set due_at = now() where finished_at is null")
	done, found, err := s.OperateNext(t.Context())
	require.NoError(t, err)
	return done, found
}

// acted are the jobs that a portion has told of.
func acted(done job.PortionDone) (ids []job.ID) {
	for _, one := range done.Requeued {
		ids = append(ids, one.ID)
	}
	for _, one := range done.Canceled {
		ids = append(ids, one.ID)
	}
	for _, one := range done.Edited {
		ids = append(ids, one.ID)
	}
	return ids
}

// operateAll does all portions, and returns the jobs and the operation as it is in the end.
func operateAll(t testing.TB, s *Store) (ids []job.ID, o job.Operation) {
	t.Helper()
	for {
		done, found := operateOnce(t, s)
		if !found {
			return ids, o
		}
		ids, o = append(ids, acted(done)...), done.Operation
	}
}

func skipped(o job.Operation) (n int64) {
	for _, jobs := range o.Skipped {
		n += jobs
	}
	return n
}

func byID(a, b job.ID) int { return slices.Compare(a[:], b[:]) }

func TestAFilterSelectsTheSameJobsInAListADryRunAndAnOperation(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := open(t)
			all := various(t, s)
			exec(t, s, "update dead_letters d set fingerprint = 'f' || j.tenant, error_code = 'c' from jobs j where j.job_id = d.job_id")
			exec(t, s, "update dead_letters d set job_type = j.job_type, tenant = j.tenant from jobs j where j.job_id = d.job_id")
			exec(t, s, "update timers t set job_type = j.job_type from jobs j where j.job_id = t.job_id")
			random := rand.New(rand.NewPCG(seed, 1))
			oneOf := func(of ...string) string { return of[random.IntN(len(of))] }
			action := []job.Action{job.ActionRequeue, job.ActionCancel, job.ActionEdit}[seed%3]
			filter := job.Filter{Type: oneOf("A", "B", "", ""), Tenant: oneOf("acme", job.DefaultTenant, "", ""), Tag: oneOf("x", "", "")}
			if filter.States = action.States(); random.IntN(2) == 0 {
				filter.States = filter.States[:1+random.IntN(len(filter.States))]
			}
			if random.IntN(3) == 0 {
				filter.CreatedFrom = all[40].created
			}
			if action == job.ActionRequeue && random.IntN(2) == 0 {
				filter.Fingerprint = "facme"
			}
			filter.Limit = 7
			want, _ := listed(t, s, filter)
			o := operation(t, s, action, filter, func(start *job.OperationStart) { start.Rate = 20 })
			require.Equal(t, job.Count{Jobs: len(want)}, o.Expected, "%+v", filter)
			require.Equal(t, 2, o.Portion())

			got, o := operateAll(t, s)
			if len(want) > 2 {
				require.Equal(t, job.OperationFinished, o.State)
			}
			slices.SortFunc(want, byID)
			slices.SortFunc(got, byID)
			require.Equal(t, want, got, "%s %+v", action, filter)
			require.EqualValues(t, len(want), o.Done+skipped(o))
			require.EqualValues(t, len(want), o.Found)
			disagreements, err := audit(t.Context(), s, 10)
			require.NoError(t, err)
			require.Empty(t, disagreements)
		})
	}
}

func TestJobsThatComeOrDieAfterTheFilterWasFrozenAreLeft(t *testing.T) {
	s := open(t)
	old := []job.ID{died(t, s, "c", "m"), died(t, s, "c", "m"), died(t, s, "c", "m")}
	o := operation(t, s, job.ActionRequeue, job.Filter{}, func(start *job.OperationStart) { start.Rate = 10 })
	require.Equal(t, 3, o.Expected.Jobs)

	late := died(t, s, "c", "m")
	first, _ := operateOnce(t, s)
	require.Len(t, first.Requeued, 1)
	again := first.Requeued[0].ID
	claimed, err := s.Claim(t.Context(), worker, []string{jobType}, 1, aMinute)
	require.NoError(t, err)
	require.Equal(t, again, claimed[0].JobID)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, as(claimed[0], job.PermanentFailure)))
	_, o = operateAll(t, s)
	require.EqualValues(t, 3, o.Done)
	for _, id := range old {
		if id != again {
			requireState(t, s, id, job.Queued)
		}
	}
	requireState(t, s, late, job.Dead)
	requireState(t, s, again, job.Dead)
	requireSound(t, s)
}

func TestAnOperationOfAnEarlierVersionGoesOn(t *testing.T) {
	s := open(t)
	id, other := died(t, s, "c", "m"), died(t, s, "other", "m")
	operation(t, s, job.ActionRequeue, job.Filter{Code: "c"})
	exec(t, s, `update operations set filter = '{"States": ["dead"], "Type": "", "Tenant": "", "WithoutHeld": false, "Code": "c", "Limit": 0,
		"Parent": "00000000-0000-0000-0000-000000000000", "CreatedFrom": "0001-01-01T00:00:00Z"}'`)
	got, o := operateAll(t, s)
	require.Equal(t, []job.ID{id}, got)
	require.Equal(t, "c", o.Filter.Code)
	requireState(t, s, other, job.Dead)
}

func TestAnOperationSaysWhyItSkipsJobs(t *testing.T) {
	s := open(t)
	plain, erased := died(t, s, "c", "m"), died(t, s, "c", "m")
	_, err := s.Erase(t.Context(), erased, "ops", "")
	require.NoError(t, err)
	w := workflow(t, named(t, "a"), named(t, "b", 0))
	ids := submitWorkflow(t, s, w)
	run(t, s, ids[0], job.PermanentFailure, "")
	require.NoError(t, s.HoldWorkflow(t.Context(), w.ID))

	operation(t, s, job.ActionRequeue, job.Filter{})
	got, o := operateAll(t, s)
	require.Equal(t, []job.ID{plain}, got)
	require.Equal(t, map[string]int64{"erased": 1, "its workflow is held or canceled": 1}, o.Skipped)
	require.EqualValues(t, 1, o.Done)
	require.EqualValues(t, 3, o.Found)
	requireSound(t, s)
}

func TestHoldAndReleaseAreOperationsToo(t *testing.T) {
	s := open(t)
	later := func(j *job.Submission) { j.Delay = time.Hour }
	ids := []job.ID{given(t, s, later), given(t, s, later)}
	ready := given(t, s)
	operation(t, s, job.ActionHold, job.Filter{WithoutHeld: true})
	_, o := operateAll(t, s)
	require.EqualValues(t, 2, o.Done)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from timers where run_at = 'infinity'"))
	operation(t, s, job.ActionRelease, job.Filter{WithoutScheduled: true})
	_, o = operateAll(t, s)
	require.EqualValues(t, 2, o.Done)
	for _, id := range append(ids, ready) {
		requireState(t, s, id, job.Queued)
	}
	requireSound(t, s)
}

func TestAnOperationIsStartedOnceForAKey(t *testing.T) {
	s := open(t)
	died(t, s, "c", "m")
	keyed := func(by, hash string) func(*job.OperationStart) {
		return func(start *job.OperationStart) {
			start.Key, start.Hash, start.By = new("k"), []byte(hash), by
		}
	}
	first := operation(t, s, job.ActionRequeue, job.Filter{}, keyed("ops", "1"))
	require.Equal(t, first.ID, operation(t, s, job.ActionRequeue, job.Filter{}, keyed("ops", "1")).ID)
	require.NotEqual(t, first.ID, operation(t, s, job.ActionRequeue, job.Filter{}, keyed("other", "1")).ID)
	start := job.OperationStart{Operation: first}
	keyed("ops", "2")(&start)
	start.ID = newID(t)
	_, err := s.StartOperation(t.Context(), start)
	require.ErrorIs(t, err, job.ErrKeyReused)
	require.Equal(t, 2, ask[int](t, s, "select count(*) from audit_log where result = 'started'"))
}

func TestAStoppedOperationActsOnNoMoreJobs(t *testing.T) {
	s := open(t)
	for range 5 {
		died(t, s, "c", "m")
	}
	o := operation(t, s, job.ActionRequeue, job.Filter{}, func(start *job.OperationStart) {
		start.Rate, start.Shown = 20, map[string]string{"state": "dead"}
	})
	require.Equal(t, map[string]string{"operationId": o.ID.String(), "state": "dead"},
		ask[map[string]string](t, s, "select filter from audit_log where result = 'started'"))
	operateOnce(t, s)
	_, err := s.StopOperation(t.Context(), o.ID, "boss", "acme")
	require.ErrorIs(t, err, job.ErrNoOperation, "it is of all tenants")
	o, err = s.StopOperation(t.Context(), o.ID, "boss", "")
	require.NoError(t, err)
	require.Equal(t, job.OperationStopped, o.State)
	require.Equal(t, "boss", o.StoppedBy)
	require.EqualValues(t, 2, o.Done)
	_, found := operateOnce(t, s)
	require.False(t, found)
	require.Equal(t, 3, ask[int](t, s, "select count(*) from dead_letters"))
	again, err := s.StopOperation(t.Context(), o.ID, "late", "")
	require.NoError(t, err)
	require.Equal(t, "boss", again.StoppedBy)
	require.Equal(t, []string{"operation.requeue started", "operation.stop stopped"},
		ask[[]string](t, s, "select array_agg(action || ' ' || result order by audit_id) from audit_log"))
}

// Two operations over the same jobs, worked on by several at once, beside cancels and edits.
func TestOverlappingOperationsActOnEachJobOnce(t *testing.T) {
	s := quickToSeeDeadlocks(t)
	const jobs = 300
	for range jobs {
		died(t, s, "c", "m")
	}
	for range 2 {
		operation(t, s, job.ActionRequeue, job.Filter{}, func(start *job.OperationStart) { start.Rate = 300 })
	}
	var mu sync.Mutex
	times := make(map[job.ID]int)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				exec(t, s, "update operations set due_at = now() where operation_id in (select operation_id from operations where finished_at is null for update skip locked)")
				done, found, err := s.OperateNext(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, id := range acted(done) {
					times[id]++
				}
				mu.Unlock()
				if !found && ask[int](t, s, "select count(*) from operations where finished_at is null") == 0 {
					return
				}
			}
		})
	}
	workers.Wait()
	require.Len(t, times, jobs)
	for id, n := range times {
		require.Equal(t, 1, n, "%s", id)
	}
	require.EqualValues(t, jobs, ask[int64](t, s, "select sum(jobs)::bigint from tallies where event = 'requeued'"))
	found, err := s.Operations(t.Context(), job.OperationFilter{Limit: 10})
	require.NoError(t, err)
	for _, o := range found {
		require.Equal(t, o.Found, o.Done+skipped(o))
	}
	requireSound(t, s)
}

func TestTheRateIsKeptByTheClockOfTheDatabase(t *testing.T) {
	s := open(t)
	for range 12 {
		died(t, s, "c", "m")
	}
	o := operation(t, s, job.ActionRequeue, job.Filter{}, func(start *job.OperationStart) { start.Rate = 10 })
	for {
		_, _, err := s.OperateNext(t.Context())
		require.NoError(t, err)
		in, more, err := s.OperationDue(t.Context())
		require.NoError(t, err)
		if !more {
			break
		}
		time.Sleep(in)
	}
	took := ask[float64](t, s, "select extract(epoch from finished_at - started_at)::float8 from operations where operation_id = $1", postgres.UUID(o.ID))
	require.Greater(t, took, 0.6, "twelve jobs, half a second of credit")
}

func TestAnOperationThatFailsIsPutOffAndFailsInTheEnd(t *testing.T) {
	s := open(t)
	died(t, s, "c", "m")
	o := operation(t, s, job.ActionRequeue, job.Filter{})
	exec(t, s, `update operations set filter = '{"Unheard": 1}'`)
	_, _, err := s.OperateNext(t.Context())
	var of *job.OperationError
	require.ErrorAs(t, err, &of)
	require.Equal(t, o.ID, of.ID)
	failed, err := s.PostponeOperation(t.Context(), o.ID, "why", 2)
	require.NoError(t, err)
	require.False(t, failed)
	_, found, err := s.OperateNext(t.Context())
	require.NoError(t, err)
	require.False(t, found, "it is put off")
	failed, err = s.PostponeOperation(t.Context(), o.ID, "why", 2)
	require.NoError(t, err)
	require.True(t, failed)
	exec(t, s, `update operations set filter = '{}'`)
	all, err := s.Operations(t.Context(), job.OperationFilter{ID: o.ID, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, job.OperationFailed, all[0].State)
	require.Equal(t, "why", all[0].LastError)
	require.NoError(t, s.ForgetOperations(t.Context(), time.Hour))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from operations"))
	require.NoError(t, s.ForgetOperations(t.Context(), 0))
	require.Zero(t, ask[int](t, s, "select count(*) from operations"))
}

// The connection breaks before and after each statement of a portion.
func TestAPortionWhoseConnectionBreaksIsDoneOnce(t *testing.T) {
	for _, lost := range []string{"request", "answer"} {
		t.Run(lost, func(t *testing.T) {
			p, s, direct := behindProxy(t)
			const jobs = 40
			for range jobs {
				died(t, direct, "c", "m")
			}
			o := operation(t, direct, job.ActionRequeue, job.Filter{}, func(start *job.OperationStart) { start.Rate = 20 })
			times := make(map[job.ID]int)
			for cut := int32(0); ; cut++ {
				exec(t, direct, "update operations set due_at = now() where finished_at is null")
				if lost == "request" {
					p.SpareRequests.Store(cut)
					p.LoseRequests.Store(1)
				} else {
					p.SpareAnswers.Store(cut)
					p.LoseAnswers.Store(1)
				}
				done, found, err := s.OperateNext(t.Context())
				if p.LoseRequests.Load() > 0 || p.LoseAnswers.Load() > 0 {
					require.NoError(t, err)
					require.Greater(t, cut, int32(5), "every statement was cut")
					p.LoseRequests.Store(0)
					p.LoseAnswers.Store(0)
					if !found {
						break
					}
				}
				for _, one := range done.Requeued {
					times[one.ID]++
				}
				if all, err := direct.Operations(t.Context(), job.OperationFilter{ID: o.ID, Limit: 1}); err == nil && all[0].FinishedAt != nil {
					break
				}
			}
			all, err := direct.Operations(t.Context(), job.OperationFilter{ID: o.ID, Limit: 1})
			require.NoError(t, err)
			require.EqualValues(t, jobs, all[0].Done)
			require.EqualValues(t, jobs, ask[int64](t, direct, "select sum(jobs)::bigint from tallies where event = 'requeued'"))
			for id, n := range times {
				require.Equal(t, 1, n, "%s", id)
			}
			requireSound(t, direct)
		})
	}
}
