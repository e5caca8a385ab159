package store

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

const (
	keyGate  = job.Gate("key:default/acct:7")
	typeGate = job.Gate("type:" + jobType)
	fairGate = job.Gate("fair:default/")
)

// gated gives a submission gates.
func gated(gates ...job.Gate) func(*job.Submission) {
	return func(j *job.Submission) { j.Gates = gates }
}

// parkedJob is a job that waits at a gate.
type parkedJob struct {
	Lane       string
	Gates      []string
	Urgency    int16
	Turn       bool
	Attempt    int
	Capacity   *int
	OnConflict *string
}

// parked is the job's row in parked; nil if it has none.
func parked(t testing.TB, s *Store, id job.ID) *parkedJob {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), `
		select p.lane, p.gates, p.urgency, coalesce(p.turn, false) as turn, p.attempt, p.capacity, p.on_conflict
		from parked p where p.job_id = $1`, postgres.UUID(id))
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[parkedJob])
	require.NoError(t, err)
	if len(found) == 0 {
		return nil
	}
	require.Len(t, found, 1)
	return found[0]
}

// wake is a row of the admitter's inbox.
type wake struct {
	Gates []string
	Freed bool
}

// wakes empties the inbox.
func wakes(t testing.TB, s *Store) []wake {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), "delete from wakes returning gates, freed")
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[wake])
	require.NoError(t, err)
	return found
}

func touched(lanes ...job.Gate) wake { return wake{Gates: names(lanes)} }
func freed(gates ...job.Gate) wake   { return wake{Gates: names(gates), Freed: true} }

func names(gates []job.Gate) []string {
	all := make([]string, len(gates))
	for i, gate := range gates {
		all[i] = string(gate)
	}
	return all
}

// admit does what an admitter without limits does: it empties the inbox, puts every parked
// job on the ready list, and counts the slots.
func admit(ctx context.Context, s *Store) error {
	_, err := s.db.Worker.Exec(ctx, `
		with drained as (
			delete from wakes returning gates, freed
		), moved as (
			delete from parked returning *
		), listed as (
			insert into ready (job_id, job_type, urgency, run_at, attempt, turn, admitted_at)
			select job_id, job_type, urgency, position, attempt, turn, statement_timestamp() from moved
		)
		insert into slots as s (gate, used)
		select gate, sum(change) from (
			select unnest(gates) as gate, -1 as change from drained where freed
			union all
			select unnest(gates), 1 from moved
		) changes
		group by gate
		on conflict (gate) do update set used = s.used + excluded.used`)
	return err
}

// requireSlots checks that each gate's slots are those of the jobs that have passed it, and
// of the freed ones in the inbox.
func requireSlots(ctx context.Context, t require.TestingT, s *Store) {
	rows, err := s.db.Worker.Query(ctx, `
		with counted as (
			select gate, count(*) as used
			from (
				select unnest(j.gates) as gate from ready r join jobs j on j.job_id = r.job_id
				union all
				select unnest(j.gates) from leases l join jobs j on j.job_id = l.job_id
				union all
				select unnest(gates) from wakes where freed
			) holders
			group by gate
		)
		select coalesce(c.gate, s.gate) from counted c full join slots s on s.gate = c.gate
		where coalesce(c.used, 0) <> coalesce(s.used, 0) and coalesce(c.gate, s.gate) ~ '^(key|tenant|type):'`)
	require.NoError(t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, wrong, "gates whose slots are miscounted")
}

// admitted submits one job with gates and admits it.
func admitted(t testing.TB, s *Store, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	id := given(t, s, changes...)
	require.NoError(t, admit(t.Context(), s))
	return id
}

// admittedRunning submits, admits and claims one job with gates.
func admittedRunning(t testing.TB, s *Store, changes ...func(*job.Submission)) job.Claimed {
	t.Helper()
	id := admitted(t, s, changes...)
	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].JobID)
	return claimed[0]
}

func TestADueJobWithGatesIsParkedAndTheRestOfItsBatchIsNot(t *testing.T) {
	for name, keyed := range map[string]func(*job.Submission){
		"with keys":    func(j *job.Submission) { j.IdempotencyKey = j.ID.String() },
		"without keys": func(*job.Submission) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			batch := []job.Submission{
				submission(t, keyed),
				submission(t, keyed, gated(keyGate, typeGate), func(j *job.Submission) {
					j.Priority = 5
					j.Terms = job.Terms{ConcurrencyKey: "acct:7", ConcurrencyLimit: 3, OnConflict: job.ConflictCancelOldest}
				}),
				submission(t, keyed, gated(typeGate)),
				submission(t, keyed, gated(fairGate), func(j *job.Submission) { j.Delay = time.Hour }),
				submission(t, keyed, gated(keyGate), func(j *job.Submission) { j.Hold = true }),
			}
			ids := submit(t, s, batch...)
			require.Nil(t, parked(t, s, ids[0]))
			limit, policy := 3, "cancel_oldest"
			require.Equal(t, &parkedJob{
				Lane: string(keyGate), Gates: names([]job.Gate{keyGate, typeGate}), Urgency: -5, Capacity: &limit, OnConflict: &policy,
			}, parked(t, s, ids[1]))
			require.Equal(t, &parkedJob{Lane: string(typeGate), Gates: names([]job.Gate{typeGate})}, parked(t, s, ids[2]))
			require.Nil(t, parked(t, s, ids[3]))
			require.Nil(t, parked(t, s, ids[4]))
			require.Equal(t, 2, ask[int](t, s, "select count(*) from timers"))
			require.Equal(t, []wake{touched(keyGate, typeGate)}, wakes(t, s))
			require.JSONEq(t, `{"concurrencyKey": "acct:7", "concurrencyLimit": 3, "onConflict": "cancel_oldest"}`,
				ask[string](t, s, "select terms::text from jobs where job_id = $1", postgres.UUID(ids[1])))
			requireState(t, s, ids[1], job.Queued)
			require.Len(t, claim(t, s, 10), 1, "only the job without gates is ready")

			for i, again := range s.Submit(t.Context(), batch) {
				require.NoError(t, again.Err)
				require.Equal(t, ids[i], again.Receipt.ID)
			}
			require.Empty(t, wakes(t, s), "nothing new was parked")
			require.Equal(t, 2, ask[int](t, s, "select count(*) from parked"))
			requireSound(t, s)
		})
	}
}

func TestAJobThatExpiresIsKeptWithItsTime(t *testing.T) {
	s := open(t)
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	ids := submit(t, s,
		submission(t, func(j *job.Submission) { j.ExpiresAt = at }),
		submission(t, func(j *job.Submission) { j.TTL = time.Minute }),
		submission(t))
	require.Equal(t, 2, ask[int](t, s, "select count(*) from expiries e join jobs j using (job_id) where e.expires_at = j.expires_at"))
	require.Equal(t, time.Minute, ask[time.Duration](t, s, "select expires_at - created_at from jobs where job_id = $1", postgres.UUID(ids[1])))
	claimed := claim(t, s, 10)
	require.Len(t, claimed, 3, "they have no gates")
	for _, c := range claimed {
		require.False(t, c.Gated)
		require.Nil(t, c.Gates())
		switch c.JobID {
		case ids[0]:
			require.True(t, at.Equal(c.ExpiresAt))
		case ids[2]:
			require.Zero(t, c.ExpiresAt)
		}
	}
}

func TestAClaimTellsTheGatesAndThePosition(t *testing.T) {
	s := open(t)
	id := given(t, s, gated(fairGate, keyGate))
	turn := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	exec(t, s, "update parked set position = $1, turn = true", pgtype.Timestamptz{Time: turn, Valid: true})
	require.NoError(t, admit(t.Context(), s))
	requireSound(t, s)
	claimed := claim(t, s, 1)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].JobID)
	require.Equal(t, []job.Gate{fairGate, keyGate}, claimed[0].Gates())
	require.True(t, claimed[0].Gated)
	require.True(t, turn.Equal(claimed[0].Position()))
	require.WithinDuration(t, time.Now(), claimed[0].RunAt, time.Minute)
	marks := s.marks.ranges([]string{jobType})
	require.True(t, marks[len(marks)-1].from.runAt.Before(turn), "the mark is in the order of the list")
}

func TestWhateverEndsAnAttemptFreesTheSlots(t *testing.T) {
	for kind, lanes := range map[job.OutcomeKind][]wake{
		job.Success:          {},
		job.Failure:          {},
		job.PermanentFailure: {},
		job.CancelConfirmed:  {},
		job.Released:         {touched(keyGate)},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := open(t)
			first := admittedRunning(t, s, gated(keyGate, typeGate))
			second := admittedRunning(t, s, gated(keyGate))
			plain := running(t, s)
			require.Empty(t, wakes(t, s), "a claim frees nothing")
			require.Equal(t, []job.SettleResult{job.Settled, job.Settled, job.Settled}, settle(t, s, as(first, kind), as(plain, kind), as(second, kind)))
			require.ElementsMatch(t, append(lanes, freed(keyGate, typeGate, keyGate)), wakes(t, s))
			requireSound(t, s)

			settle(t, s, as(first, kind))
			settled(t, s, running(t, s, func(j *job.Submission) { j.Priority = 9 }), kind)
			require.Empty(t, wakes(t, s), "nothing else was freed")
		})
	}
}

func TestAReleasedJobPassesItsGatesAgain(t *testing.T) {
	s := open(t)
	c := admittedRunning(t, s, gated(keyGate, typeGate), func(j *job.Submission) {
		j.Terms = job.Terms{ConcurrencyKey: "acct:7", ConcurrencyLimit: 3}
	})
	settlement := as(c, job.Released)
	settlement.Attempt = 2
	settle(t, s, settlement)
	limit := 3
	require.Equal(t, &parkedJob{
		Lane: string(keyGate), Gates: names([]job.Gate{keyGate, typeGate}), Attempt: 2, Capacity: &limit,
	}, parked(t, s, c.JobID))
	requireState(t, s, c.JobID, job.Queued)
}

func TestAReaperKnowsThatAJobHasGates(t *testing.T) {
	s := open(t)
	c := admittedRunning(t, s, gated(keyGate))
	expire(t, s, c.Lease)
	taken := c
	taken.Lease = reap(t, s, 1)[0].Lease
	require.True(t, taken.Gated)
	settled(t, s, taken, job.Success)
	require.Equal(t, []wake{freed(keyGate)}, wakes(t, s))
	c = running(t, s)
	expire(t, s, c.Lease)
	require.False(t, reap(t, s, 1)[0].Gated)
}

// The slots that an admitter counts stay right, whatever happens to the jobs.
func TestSlotsAreCountedUntilTheAttemptsEnd(t *testing.T) {
	s := open(t)
	submit(t, s, submissions(t, 12, gated(keyGate, typeGate))...)
	require.NoError(t, admit(t.Context(), s))
	requireSlots(t.Context(), t, s)
	claimed := claim(t, s, 10)
	requireSlots(t.Context(), t, s)
	for i, c := range claimed {
		settle(t, s, as(c, job.OutcomeKinds()[i%len(job.OutcomeKinds())]))
		requireSlots(t.Context(), t, s)
	}
	require.NoError(t, admit(t.Context(), s))
	requireSlots(t.Context(), t, s)
}

func TestWhateverQueuesAJobWithGatesParksIt(t *testing.T) {
	later := func(j *job.Submission) { j.Delay = time.Hour }
	inTheEnd := map[string]struct {
		prepare func(*testing.T, *Store) job.ID
		queue   func(*testing.T, *Store, job.ID)
	}{
		"promote": {
			func(t *testing.T, s *Store) job.ID { return given(t, s, gated(keyGate, typeGate), later) },
			func(t *testing.T, s *Store, _ job.ID) {
				given(t, s, later)
				pass(t, s, 2*time.Hour)
				promoted, err := s.Promote(t.Context(), 10)
				require.NoError(t, err)
				require.Equal(t, job.Promoted{Ready: 1, Parked: 1}, promoted)
			},
		},
		"promote after a failure": {
			func(t *testing.T, s *Store) job.ID {
				c := admittedRunning(t, s, gated(keyGate, typeGate))
				settled(t, s, c, job.Failure)
				return c.JobID
			},
			func(t *testing.T, s *Store, id job.ID) {
				require.Equal(t, 1, promote(t, s, 10))
				require.Equal(t, 1, parked(t, s, id).Attempt)
			},
		},
		"release": {
			func(t *testing.T, s *Store) job.ID {
				return given(t, s, gated(keyGate, typeGate), func(j *job.Submission) { j.Hold = true })
			},
			func(t *testing.T, s *Store, id job.ID) {
				_, err := s.Release(t.Context(), id)
				require.NoError(t, err)
			},
		},
		"requeue": {
			deadWithGates,
			func(t *testing.T, s *Store, id job.ID) {
				_, err := s.Requeue(t.Context(), id)
				require.NoError(t, err)
				require.Zero(t, parked(t, s, id).Attempt)
			},
		},
		"redrive": {
			deadWithGates,
			func(t *testing.T, s *Store, _ job.ID) {
				dead(t, s)
				requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
				require.NoError(t, err)
				require.Len(t, requeued, 2)
			},
		},
	}
	for name, verb := range inTheEnd {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			id := verb.prepare(t, s)
			wakes(t, s)
			verb.queue(t, s, id)
			found := parked(t, s, id)
			require.NotNil(t, found)
			require.Equal(t, []any{string(keyGate), names([]job.Gate{keyGate, typeGate})}, []any{found.Lane, found.Gates})
			require.Equal(t, []wake{touched(keyGate)}, wakes(t, s))
			requireState(t, s, id, job.Queued)
		})
	}
}

func deadWithGates(t *testing.T, s *Store) job.ID {
	c := admittedRunning(t, s, gated(keyGate, typeGate))
	settled(t, s, c, job.PermanentFailure)
	return c.JobID
}

func TestACancelFreesTheSlotsOfAReadyJobOnly(t *testing.T) {
	turn := func(t *testing.T, s *Store) {
		exec(t, s, "update parked set turn = true, position = '2001-02-03'")
	}
	for name, waiting := range map[string]struct {
		prepare func(*testing.T, *Store) job.ID
		want    []wake
	}{
		"parked": {
			func(t *testing.T, s *Store) job.ID { return given(t, s, gated(keyGate, typeGate)) },
			nil,
		},
		"not due": {
			func(t *testing.T, s *Store) job.ID {
				return given(t, s, gated(keyGate), func(j *job.Submission) { j.Delay = time.Hour })
			},
			nil,
		},
		"ready": {
			func(t *testing.T, s *Store) job.ID { return admitted(t, s, gated(keyGate, typeGate)) },
			[]wake{freed(keyGate, typeGate)},
		},
		"ready with a turn": {
			func(t *testing.T, s *Store) job.ID {
				id := given(t, s, gated(fairGate, keyGate))
				turn(t, s)
				require.NoError(t, admit(t.Context(), s))
				return id
			},
			[]wake{freed(fairGate, keyGate)},
		},
		"parked with a turn": {
			func(t *testing.T, s *Store) job.ID {
				id := given(t, s, gated(fairGate, keyGate))
				turn(t, s)
				return id
			},
			nil,
		},
		"ready without gates": {
			func(t *testing.T, s *Store) job.ID { return given(t, s) },
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			id := waiting.prepare(t, s)
			wakes(t, s)
			canceled, err := s.Cancel(t.Context(), id)
			require.NoError(t, err)
			require.True(t, canceled.Canceled)
			require.Equal(t, len(waiting.want) > 0, canceled.Freed)
			require.ElementsMatch(t, waiting.want, wakes(t, s))
			requireState(t, s, id, job.Canceled)
			require.Empty(t, claim(t, s, 10))
		})
	}
}

func TestAClaimedJobThatMayNotStartIsParked(t *testing.T) {
	s := open(t)
	c := admittedRunning(t, s, gated(keyGate))
	next := []job.Gate{keyGate, typeGate}
	fates, err := s.Park(t.Context(), []job.Parking{{Lease: c.Lease, Gates: next}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Settled}, fates)
	require.Equal(t, &parkedJob{Lane: string(keyGate), Gates: names(next)}, parked(t, s, c.JobID))
	require.ElementsMatch(t, []wake{freed(keyGate), touched(keyGate)}, wakes(t, s))
	requireState(t, s, c.JobID, job.Queued)
	require.Zero(t, ask[int](t, s, "select count(*) from job_attempts"), "nothing was tried")

	fates, err = s.Park(t.Context(), []job.Parking{{Lease: c.Lease, Gates: next}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Lost}, fates)
	require.Empty(t, wakes(t, s))

	require.NoError(t, admit(t.Context(), s))
	again := claim(t, s, 1)
	require.Len(t, again, 1)
	require.Equal(t, next, again[0].Gates())
	require.Equal(t, []any{1, c.Fence + 1}, []any{again[0].Attempt, again[0].Fence}, "uncharged, and no fence twice")
	settled(t, s, again[0], job.Success)
	require.Equal(t, []wake{freed(next...)}, wakes(t, s))
}

func TestAClaimedJobWithoutGatesIsParkedOrReadyAgain(t *testing.T) {
	s := open(t)
	first, second := running(t, s), running(t, s)
	fates, err := s.Park(t.Context(), []job.Parking{{Lease: second.Lease}, {Lease: first.Lease, Gates: []job.Gate{typeGate}}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Settled, job.Settled}, fates)
	require.Equal(t, []wake{touched(typeGate)}, wakes(t, s))
	require.NotNil(t, parked(t, s, first.JobID))
	requireSound(t, s)
	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 10)
	require.Len(t, claimed, 1)
	require.Equal(t, second.JobID, claimed[0].JobID)
}

func TestOnlyTheOwnerParksAndNotWhatIsToBeCanceled(t *testing.T) {
	s := open(t)
	stale, canceling := admittedRunning(t, s, gated(keyGate)), admittedRunning(t, s, gated(keyGate))
	expire(t, s, stale.Lease)
	require.Len(t, reap(t, s, 10), 1)
	_, err := s.Cancel(t.Context(), canceling.JobID)
	require.NoError(t, err)
	fates, err := s.Park(t.Context(), []job.Parking{{Lease: stale.Lease, Gates: []job.Gate{typeGate}}, {Lease: canceling.Lease}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Lost, job.Canceling}, fates)
	require.Empty(t, wakes(t, s))
	require.Equal(t, 2, ask[int](t, s, "select count(*) from leases"))
	requireSound(t, s)
}

func TestTheAuditSeesWhatIsWrongWithParkedJobs(t *testing.T) {
	for name, wrong := range map[string]struct {
		change, list, differs string
	}{
		"gates":      {"update parked set gates = '{type:OTHER}'", "parked", "gates"},
		"no gates":   {"update jobs set gates = null", "parked", "gates"},
		"type":       {"update parked set job_type = 'OTHER'", "parked", "job_type"},
		"tenant":     {"update parked set tenant = 'other'", "parked", "tenant"},
		"urgency":    {"update parked set urgency = 7", "parked", "urgency"},
		"attempt":    {"update parked set attempt = 3", "parked", "attempt"},
		"position":   {"update parked set position = now() + interval '1 hour'", "parked", "run_at"},
		"two lists":  {"insert into ready (job_id, job_type, urgency, run_at) select job_id, job_type, urgency, position from parked", "ready and parked", ""},
		"wrong list": {"with gone as (delete from parked returning *) insert into timers (job_id, run_at) select job_id, position from gone", "timers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			id := given(t, s, gated(keyGate))
			requireSound(t, s)
			exec(t, s, wrong.change)
			found, err := audit(t.Context(), s, 10)
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, disagreement{ID: id, State: "queued", List: wrong.list, Differs: wrong.differs}, found[0])
		})
	}
}

func TestAJobWithATurnIsNotMisplaced(t *testing.T) {
	s := open(t)
	given(t, s, gated(fairGate, keyGate))
	exec(t, s, "update parked set turn = true, position = '2001-02-03'")
	requireSound(t, s)
	require.NoError(t, admit(t.Context(), s))
	requireSound(t, s)
}

func TestParkedJobsCountAsQueued(t *testing.T) {
	s := open(t)
	hourAgo := func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) }
	given(t, s)
	given(t, s, gated(keyGate), hourAgo)
	c := admittedRunning(t, s, gated(typeGate), func(j *job.Submission) { j.Priority = 5 })
	given(t, s, gated(keyGate))
	settled(t, s, c, job.Failure)
	promote(t, s, 1)
	found := queues(t, s)
	require.Len(t, found, 1)
	require.Less(t, found[0].OldestQueuedSeconds, 60.0, "of the job without gates: the others cannot be claimed")
	require.EqualValues(t, 4, found[0].Queued)
	metrics, err := s.Metrics(t.Context(), time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 4, metrics.StatusCounts[job.Queued])
	require.Equal(t, map[int]int64{0: 3, 1: 1}, metrics.AttemptDistribution)
	page, err := s.List(t.Context(), job.Filter{Limit: 10, States: []job.State{job.Queued}})
	require.NoError(t, err)
	require.Len(t, page.Jobs, 4)
}

// The virtual time of a turn says nothing about how long a job has waited.
func TestTheAgeOfAJobWithATurnIsNotItsVirtualTime(t *testing.T) {
	s := open(t)
	given(t, s, gated(fairGate, keyGate), func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) })
	exec(t, s, "update parked set turn = true, position = '2001-02-03'")
	require.Zero(t, queues(t, s)[0].OldestQueuedSeconds, "nobody can claim it")
	require.NoError(t, admit(t.Context(), s))
	require.Less(t, queues(t, s)[0].OldestQueuedSeconds, 60.0, "since it was admitted")
	unserved, err := s.Unserved(t.Context(), time.Minute)
	require.NoError(t, err)
	require.Len(t, unserved, 1)
	require.InDelta(t, time.Hour, unserved[0].Oldest, float64(time.Minute))
}
