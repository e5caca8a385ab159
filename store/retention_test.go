package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	googleuuid "github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// past is a job of the past, written straight into the ledger and its lists.
type past struct {
	ID       job.ID
	Type     string
	Tenant   string
	State    job.State
	Key      string        // the idempotency key
	Created  time.Duration // ago
	Finished time.Duration // ago; for final states
	Attempts int           // unsuccessful ones, each with a log
}

// write inserts the jobs.
func write(t testing.TB, s *Store, jobs ...*past) {
	t.Helper()
	for _, p := range jobs {
		if p.ID == (job.ID{}) {
			random := googleuuid.New()
			p.ID = firstID(time.Now().Add(-p.Created))
			copy(p.ID[9:], random[9:])
		}
		if p.Type == "" {
			p.Type = jobType
		}
		if p.Tenant == "" {
			p.Tenant = job.DefaultTenant
		}
	}
	column := func(of func(*past) string) any { return postgres.Column(jobs, of) }
	ids := postgres.Column(jobs, func(p *past) pgtype.UUID { return postgres.UUID(p.ID) })
	exec(t, s, `
		insert into jobs (job_id, tenant, job_type, priority, idempotency_key, request_hash, payload, tags, trace_parent, trace_state,
			max_attempts, timeout, state, run_at, created_at)
		select i.id, i.tenant, i.kind, 0, nullif(i.key, ''), '\x01', '{"secret": 1}', '{tag}', 'parent', 'state', 40, '30 seconds', 'queued',
			now(), now() - i.created
		from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::interval[]) i (id, tenant, kind, key, created)`,
		ids, column(func(p *past) string { return p.Tenant }), column(func(p *past) string { return p.Type }),
		column(func(p *past) string { return p.Key }), postgres.Column(jobs, func(p *past) pgtype.Interval { return postgres.Interval(p.Created) }))
	exec(t, s, `
		update jobs j set state = i.state::job_state, fence = 30, attempt = least(i.attempts, 3), last_error = 'secret', progress = '"secret"',
			result = '"secret"', checkpoint = '"secret"', started_at = now() - i.finished,
			finished_at = case when i.state in ('succeeded', 'canceled', 'dead') then now() - i.finished end
		from unnest($1::uuid[], $2::text[], $3::integer[], $4::interval[]) i (id, state, attempts, finished)
		where j.job_id = i.id and i.state <> 'queued' and i.state <> 'created' and i.state <> 'running'`,
		ids, column(func(p *past) string { return string(p.State) }), postgres.Column(jobs, func(p *past) int32 { return int32(p.Attempts) }),
		postgres.Column(jobs, func(p *past) pgtype.Interval { return postgres.Interval(p.Finished) }))
	states := column(func(p *past) string { return string(p.State) })
	exec(t, s, `insert into ready (job_id, job_type, urgency, run_at) select j.job_id, j.job_type, 0, j.run_at
		from unnest($1::uuid[], $2::text[]) i (id, state) join jobs j on j.job_id = i.id where i.state = 'queued'`, ids, states)
	exec(t, s, `insert into leases (job_id, lease_id, fence, worker_id, claimed_at, expires_at) select j.job_id, gen_random_uuid(), 1, 'w', now(), now() + interval '1 hour'
		from unnest($1::uuid[], $2::text[]) i (id, state) join jobs j on j.job_id = i.id where i.state = 'running'`, ids, states)
	exec(t, s, `with created as (
			update jobs j set state = 'created' from unnest($1::uuid[], $2::text[]) i (id, state) where j.job_id = i.id and i.state = 'created')
		insert into timers (job_id, run_at, job_type, state, attempt) select j.job_id, j.run_at, j.job_type, i.state::job_state, j.attempt
		from unnest($1::uuid[], $2::text[]) i (id, state) join jobs j on j.job_id = i.id where i.state in ('created', 'retry')`, ids, states)
	exec(t, s, `insert into dead_letters (job_id, dead_at, job_type, tenant) select j.job_id, j.finished_at, j.job_type, j.tenant
		from unnest($1::uuid[], $2::text[]) i (id, state) join jobs j on j.job_id = i.id where i.state = 'dead'`, ids, states)
	exec(t, s, `insert into unsuccessful_attempts (job_id, fence, attempt, lease_id, worker_id, claimed_at, ended_at, outcome, error_code, error, stack)
		select i.id, n, n, gen_random_uuid(), 'w', now(), now(), 'failed', 'E1', 'secret', 'secret'
		from unnest($1::uuid[], $2::integer[]) i (id, attempts) cross join generate_series(1, i.attempts) n`,
		ids, postgres.Column(jobs, func(p *past) int32 { return int32(p.Attempts) }))
	exec(t, s, `insert into attempt_logs (job_id, fence, attempt, lines, dropped) select job_id, fence, attempt, '[]', 0 from unsuccessful_attempts
		where job_id = any($1)`, ids)
}

// sweepAll sweeps until both walks have looked at aDay that is old enough.
func sweepAll(t testing.TB, s *Store, policies job.RetentionPolicies, limit int) (done job.Swept) {
	t.Helper()
	done = job.Swept{Deleted: map[job.State]int64{}, Blanked: map[job.State]int64{}}
	for _, walk := range []job.Walk{job.WalkEnded, job.WalkDead} {
		for restart := true; ; restart = false {
			swept, err := s.Sweep(t.Context(), walk, policies, worker, limit, restart)
			require.NoError(t, err)
			for state, n := range swept.Deleted {
				done.Deleted[state] += n
			}
			for state, n := range swept.Blanked {
				done.Blanked[state] += n
			}
			if swept.Reached {
				break
			}
		}
	}
	return done
}

// fates is what must have become of a job.
const (
	isKept    = "kept"
	isBlanked = "blanked"
	isGone    = "gone"
)

// fateOf is the model: what retention does with a job that it looks at.
func fateOf(policies job.RetentionPolicies, p *past) string {
	policy, own := policies.Types[p.Type]
	if !own {
		policy = policies.Default
	}
	keep := policy.After(p.State)
	switch {
	case !p.State.Final() || keep == nil || p.Finished < *keep:
		return isKept
	case p.Key != "" && (policy.Keys == nil || p.Finished < *policy.Keys):
		return isBlanked
	}
	return isGone
}

// found is what has become of each job.
func found(t testing.TB, s *Store, jobs []*past) map[job.ID]string {
	t.Helper()
	fates := make(map[job.ID]string, len(jobs))
	for _, p := range jobs {
		fates[p.ID] = isGone
	}
	type row struct {
		JobID  job.ID
		Erased bool
		Sound  bool
	}
	rows, err := s.db.Worker.Query(t.Context(), `
		select j.job_id, j.erased_at is not null as erased,
			case when j.erased_at is null then
				j.payload::text = '{"secret": 1}'
				and (select count(*) from unsuccessful_attempts a where a.job_id = j.job_id and a.error = 'secret')
					= (select count(*) from attempt_logs l where l.job_id = j.job_id)
			else
				j.payload::text = 'null' and j.result is null and j.progress is null and j.checkpoint is null and j.last_error is null
				and j.tags = '{}' and j.trace_parent = '' and j.trace_state = '' and j.idempotency_key is not null and j.request_hash = '\x01'
				and not exists (select from unsuccessful_attempts a where a.job_id = j.job_id)
				and not exists (select from attempt_logs l where l.job_id = j.job_id)
				and (j.state <> 'dead' or (select d.erased from dead_letters d where d.job_id = j.job_id))
			end as sound
		from jobs j`)
	require.NoError(t, err)
	all, err := collect[row](rows)
	require.NoError(t, err)
	for _, r := range all {
		require.Contains(t, fates, r.JobID)
		require.True(t, r.Sound, "job %s, erased: %t", r.JobID, r.Erased)
		fates[r.JobID] = isKept
		if r.Erased {
			fates[r.JobID] = isBlanked
		}
	}
	for _, table := range []string{"unsuccessful_attempts", "attempt_logs", "dead_letters", "expiries"} {
		require.Zero(t, ask[int](t, s, fmt.Sprintf("select count(*) from %s x where not exists (select from jobs j where j.job_id = x.job_id)", table)), table)
	}
	return fates
}

func randomPolicies(r *rand.Rand) job.RetentionPolicies {
	one := func() (policy job.Retention) {
		for _, keep := range []**time.Duration{&policy.Succeeded, &policy.Canceled, &policy.Dead, &policy.Keys} {
			if r.IntN(4) > 0 {
				*keep = new(time.Duration(1+r.IntN(100)) * time.Hour)
			}
		}
		return policy
	}
	policies := job.RetentionPolicies{Default: one(), Types: map[string]job.Retention{}}
	for i := range r.IntN(4) {
		policies.Types[fmt.Sprintf("TYPE_%d", i)] = one()
	}
	return policies
}

func randomJobs(r *rand.Rand, n int) []*past {
	jobs := make([]*past, n)
	for i := range jobs {
		created := time.Duration(r.Int64N(int64(120 * time.Hour)))
		jobs[i] = &past{
			Type: fmt.Sprintf("TYPE_%d", r.IntN(5)), State: job.States()[r.IntN(len(job.States()))], Created: created,
			Finished: time.Duration(r.Int64N(int64(created) + 1)), Attempts: r.IntN(3),
		}
		if jobs[i].State == job.Created || jobs[i].State == job.Queued || jobs[i].State == job.Running {
			jobs[i].Attempts = 0
		}
		if r.IntN(3) == 0 {
			jobs[i].Key = fmt.Sprintf("key %d", i)
		}
		if r.IntN(3) == 0 {
			jobs[i].Tenant = fmt.Sprintf("tenant %d", r.IntN(3))
		}
	}
	return jobs
}

// Whatever the policies, exactly the jobs whose time is over go, and nothing else.
func TestExactlyTheJobsGoWhoseTimeIsOver(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := open(t)
			r := rand.New(rand.NewPCG(seed, 0))
			policies, jobs := randomPolicies(r), randomJobs(r, 600)
			write(t, s, jobs...)
			want := make(map[job.ID]string)
			counted := job.Swept{Deleted: map[job.State]int64{job.Succeeded: 0, job.Canceled: 0, job.Dead: 0}, Blanked: map[job.State]int64{job.Succeeded: 0, job.Canceled: 0, job.Dead: 0}}
			for _, p := range jobs {
				want[p.ID] = fateOf(policies, p)
				switch want[p.ID] {
				case isGone:
					counted.Deleted[p.State]++
				case isBlanked:
					counted.Blanked[p.State]++
				}
			}
			done := sweepAll(t, s, policies, 1+r.IntN(200))
			for _, state := range []job.State{job.Succeeded, job.Canceled, job.Dead} {
				require.Equal(t, counted.Deleted[state], done.Deleted[state], "deleted: %s", state)
				require.Equal(t, counted.Blanked[state], done.Blanked[state], "blanked: %s", state)
			}
			require.Equal(t, want, found(t, s, jobs))
			requireSound(t, s)
			again := sweepAll(t, s, policies, 100)
			require.Zero(t, again.Jobs(), "nothing is left to do")
			require.Equal(t, want, found(t, s, jobs))
		})
	}
}

func days(n int) *time.Duration { return new(time.Duration(n) * 24 * time.Hour) }

// old is a job whose time is over by far.
func old(state job.State, changes ...func(*past)) *past {
	p := &past{State: state, Created: 100 * 24 * time.Hour, Finished: 100 * 24 * time.Hour, Attempts: 1}
	for _, change := range changes {
		change(p)
	}
	return p
}

var aDay = job.RetentionPolicies{Default: job.Retention{Succeeded: days(1), Canceled: days(1), Dead: days(1), Keys: days(2)}}

func TestOneDeleterWorksAtATime(t *testing.T) {
	s := open(t)
	jobs := []*past{old(job.Succeeded), old(job.Succeeded)}
	write(t, s, jobs...)
	first, err := s.Sweep(t.Context(), job.WalkEnded, aDay, worker, 1, false)
	require.NoError(t, err)
	require.True(t, first.Mine)
	second, err := s.Sweep(t.Context(), job.WalkEnded, aDay, other, 1, false)
	require.NoError(t, err)
	require.False(t, second.Mine, "the first is still there")
	exec(t, s, "update retention set worked_at = worked_at - interval '11 seconds'")
	second, err = s.Sweep(t.Context(), job.WalkEnded, aDay, other, 1, false)
	require.NoError(t, err)
	require.True(t, second.Mine, "the first is gone")
	require.EqualValues(t, 1, second.Jobs(), "it goes on where the first one was")

	release := locked(t, s, "select pg_advisory_xact_lock(4653017)")
	again, err := s.Sweep(t.Context(), job.WalkEnded, aDay, other, 10, true)
	require.NoError(t, err)
	require.False(t, again.Mine)
	release()
}

func TestTwoDeletersDeleteEachJobOnce(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(7, 7))
	policies, jobs := aDay, randomJobs(r, 1500)
	write(t, s, jobs...)
	want := make(map[job.ID]string)
	gone := int64(0)
	for _, p := range jobs {
		if want[p.ID] = fateOf(policies, p); want[p.ID] == isGone {
			gone++
		}
	}
	deleted := make(chan int64)
	for _, name := range []string{worker, other} {
		one := openAt(t, urlOf(s))
		go func() {
			n := int64(0)
			defer func() { deleted <- n }()
			for range 60 {
				for _, walk := range []job.Walk{job.WalkEnded, job.WalkDead} {
					swept, err := one.Sweep(t.Context(), walk, policies, name, 50, false)
					if err != nil {
						t.Error(err)
						return
					}
					for _, count := range swept.Deleted {
						n += count
					}
					_, err = one.db.Worker.Exec(t.Context(), "update retention set worked_at = worked_at - interval '11 seconds' where walk = $1", string(walk))
					if err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	require.Equal(t, gone, <-deleted+<-deleted)
	require.Equal(t, want, found(t, s, jobs))
}

func TestALostMarkIsHarmless(t *testing.T) {
	s := open(t)
	jobs := []*past{old(job.Succeeded), old(job.Dead), old(job.Queued), old(job.Succeeded), old(job.Dead)}
	write(t, s, jobs...)
	for range 10 {
		for _, walk := range []job.Walk{job.WalkEnded, job.WalkDead} {
			_, err := s.Sweep(t.Context(), walk, aDay, worker, 2, false) // one of the two is kept
			require.NoError(t, err)
			exec(t, s, "delete from retention")
		}
	}
	want := map[job.ID]string{}
	for _, p := range jobs {
		want[p.ID] = fateOf(aDay, p)
	}
	require.Equal(t, want, found(t, s, jobs))
}

// Other policies hold from the first job on, at once.
func TestTheWalkBeginsAgainWhenThePoliciesChange(t *testing.T) {
	s := open(t)
	jobs := []*past{old(job.Succeeded), old(job.Canceled)}
	write(t, s, jobs...)
	sweepAll(t, s, job.RetentionPolicies{Default: job.Retention{Canceled: days(1)}}, 10)
	require.Equal(t, map[job.ID]string{jobs[0].ID: isKept, jobs[1].ID: isGone}, found(t, s, jobs))
	swept, err := s.Sweep(t.Context(), job.WalkEnded, aDay, worker, 10, false)
	require.NoError(t, err)
	require.EqualValues(t, 1, swept.Jobs())
}

// A deleter that is killed in the middle of its statement has done nothing.
func TestAKilledDeleterHasDoneNothing(t *testing.T) {
	for _, walk := range []job.Walk{job.WalkEnded, job.WalkDead} {
		t.Run(string(walk), func(t *testing.T) {
			s := open(t)
			jobs := []*past{old(walk.States()[0]), old(walk.States()[0], func(p *past) { p.Key = "key" }), old(job.Queued, func(p *past) { p.Attempts = 0 })}
			write(t, s, jobs...)
			before := found(t, s, jobs)
			killed := openAt(t, urlOf(s))
			release := locked(t, s, "lock table attempt_logs in share mode")
			wait := after(func() error {
				_, err := killed.Sweep(t.Context(), walk, aDay, worker, 10, false)
				return err
			})
			awaitBlocked(t, s, 1)
			exec(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
			require.Error(t, wait())
			release()
			require.Equal(t, before, found(t, s, jobs))
			require.Zero(t, ask[int](t, s, "select count(*) from retention"), "nor has it moved its mark")
			requireSound(t, s)
			require.EqualValues(t, 2, sweepAll(t, s, aDay, 10).Jobs())
		})
	}
}

// Whatever holds a job at the moment: the deleter does not wait for it, and what it finds
// afterwards is what counts.
func TestTheDeleterLeavesJobsThatOthersHold(t *testing.T) {
	s := open(t)
	ended, dead, letter := old(job.Succeeded, func(p *past) { p.Key = "key" }), old(job.Dead), old(job.Dead)
	jobs := []*past{ended, dead, letter}
	write(t, s, jobs...)
	release := []func(){
		locked(t, s, "select from jobs where job_id = any($1) for update", []any{postgres.UUID(ended.ID), postgres.UUID(dead.ID)}),
		locked(t, s, "select from dead_letters where job_id = $1 for update", postgres.UUID(letter.ID)),
	}
	require.Zero(t, sweepAll(t, s, aDay, 10).Jobs())
	for _, end := range release {
		end()
	}
	require.EqualValues(t, 3, sweepAll(t, s, aDay, 10).Jobs())
	requireSound(t, s)
}

// While jobs are requeued, redriven and submitted again, the deleter takes dead ones: each
// is either deleted or requeued, and none is half of either.
func TestRequeuesAndTheDeleterExcludeEachOther(t *testing.T) {
	s := open(t)
	repeat, end := loops(t)
	defer end()
	repeat(func() error {
		_, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 3})
		return err
	})
	const portion = 300
	next := make(chan *past, portion)
	repeat(func() error {
		select {
		case p := <-next:
			_, err := s.Requeue(t.Context(), p.ID)
			if err != nil {
				return nil //nolint:nilerr // it was deleted or redriven
			}
		default:
		}
		return nil
	})
	dead, deleted := 0, 0
	for deleted == 0 || deleted == dead { // One of them was always faster.
		jobs := make([]*past, portion)
		for i := range jobs {
			jobs[i] = old(job.Dead)
		}
		write(t, s, jobs...)
		dead += portion
		for _, p := range jobs {
			next <- p
		}
		for ask[int](t, s, "select count(*) from dead_letters") > 0 {
			swept, err := s.Sweep(t.Context(), job.WalkDead, aDay, worker, 5, true)
			require.NoError(t, err)
			deleted += int(swept.Deleted[job.Dead])
		}
	}
	end()
	require.Equal(t, dead-deleted, ask[int](t, s, "select count(*) from jobs where state = 'queued'"))
	requireSound(t, s)
	for _, table := range []string{"unsuccessful_attempts", "attempt_logs"} {
		require.Equal(t, dead-deleted, ask[int](t, s, "select count(*) from "+table))
	}
}

// A late repetition of a submission finds the blanked job.
func TestABlankedJobAnswersForItsKey(t *testing.T) {
	s := open(t)
	one := submission(t, func(s *job.Submission) { s.IdempotencyKey = "order-1" })
	submit(t, s, one)
	_, err := s.Cancel(t.Context(), one.ID)
	require.NoError(t, err)
	exec(t, s, "update jobs set finished_at = now() - interval '1 day'")
	exec(t, s, "update jobs set job_id = $2 where job_id = $1", postgres.UUID(one.ID), postgres.UUID(firstID(time.Now().Add(-24*time.Hour))))
	policies := job.RetentionPolicies{Default: job.Retention{Canceled: new(time.Hour), Keys: days(2)}}
	require.EqualValues(t, 1, sweepAll(t, s, policies, 10).Blanked[job.Canceled])
	again := submission(t, func(s *job.Submission) { s.IdempotencyKey = "order-1" })
	done := s.Submit(t.Context(), []job.Submission{again})
	require.NoError(t, done[0].Err)
	require.True(t, done[0].Receipt.Replayed)
	again = submission(t, func(s *job.Submission) { s.IdempotencyKey, s.Payload = "order-1", []byte(`{"n": 2}`) })
	require.ErrorIs(t, s.Submit(t.Context(), []job.Submission{again})[0].Err, job.ErrKeyReused, "its hash is kept")
	exec(t, s, "update jobs set finished_at = now() - interval '3 days'")
	require.EqualValues(t, 1, sweepAll(t, s, policies, 10).Deleted[job.Canceled])
	require.False(t, s.Submit(t.Context(), []job.Submission{again})[0].Receipt.Replayed, "its key is free")
}

// A job that keeps others out by its time stays until then, blanked. What a deleted job kept
// out is free.
func TestAUniqueJobKeepsOthersOutAfterItsTime(t *testing.T) {
	s := open(t)
	timed, open := old(job.Succeeded), old(job.Dead)
	write(t, s, timed, open)
	exec(t, s, "insert into unique_keys values ('\\x01', $1, now() + interval '1 hour'), ('\\x02', $2, null)", postgres.UUID(timed.ID), postgres.UUID(open.ID))
	sweepAll(t, s, aDay, 10)
	require.False(t, ask[bool](t, s, "select erased_at is null from jobs where job_id = $1", postgres.UUID(timed.ID)))
	require.Zero(t, ask[int](t, s, "select count(*) from jobs where job_id = $1", postgres.UUID(open.ID)))

	one := submission(t, func(s *job.Submission) { s.Unique = &job.Unique{WhileOpen: true}; s.Unique.Digest[0] = 2 })
	exec(t, s, "update unique_keys set digest = $1 where digest = '\\x02'", one.Unique.Digest[:])
	done := s.Submit(t.Context(), []job.Submission{one})
	require.NoError(t, done[0].Err)
	require.False(t, done[0].Receipt.Duplicate, "the job that had the key is gone")

	exec(t, s, "update unique_keys set expires_at = now() - interval '1 second' where digest = '\\x01'")
	sweepAll(t, s, aDay, 10)
	require.Zero(t, ask[int](t, s, "select count(*) from jobs where job_id = $1", postgres.UUID(timed.ID)))
}

// The follower must find a job whose end it has not told yet.
func TestAJobStaysUntilItsEndIsFollowedUp(t *testing.T) {
	s := open(t)
	ended, dead := old(job.Succeeded), old(job.Dead)
	write(t, s, ended, dead)
	exec(t, s, "update jobs set followed = true")
	exec(t, s, "insert into ends (job_id, state, at) select job_id, state, finished_at from jobs")
	require.Zero(t, sweepAll(t, s, aDay, 10).Jobs())
	plan, err := s.PlanRetention(t.Context(), aDay)
	require.NoError(t, err)
	require.Equal(t, job.FateNeeded, plan.Groups[0].Fate)
	exec(t, s, "delete from ends")
	exec(t, s, "insert into undelivered (job_id, state, at, reason) select job_id, state, finished_at, 'no plugin' from jobs")
	require.Zero(t, sweepAll(t, s, aDay, 10).Jobs(), "it could not be announced")
	exec(t, s, "delete from undelivered")
	require.EqualValues(t, 2, sweepAll(t, s, aDay, 10).Jobs())
}

// An end that cannot be announced keeps its own job, and no other: until it is given up.
func TestAnUndeliverableEndKeepsOnlyItsOwnJob(t *testing.T) {
	for _, state := range []job.State{job.Succeeded, job.Dead} {
		t.Run(string(state), func(t *testing.T) {
			s := open(t)
			stuck := &past{State: state, Created: 50 * time.Hour, Finished: 49 * time.Hour}
			write(t, s, stuck, old(state), old(state), old(state))
			exec(t, s, "update jobs set followed = true")
			exec(t, s, "insert into undelivered (job_id, state, at, reason) select job_id, state, finished_at, 'refused' from jobs where job_id = $1", postgres.UUID(stuck.ID))
			plan, err := s.PlanRetention(t.Context(), aDay)
			require.NoError(t, err)
			require.Len(t, plan.Groups, 2)
			require.EqualValues(t, 3, sweepAll(t, s, aDay, 10).Jobs())
			require.Equal(t, stuck.ID, ask[job.ID](t, s, "select job_id from jobs"))
			exec(t, s, "update undelivered set given_up_at = now()")
			require.EqualValues(t, 1, sweepAll(t, s, aDay, 10).Jobs())
		})
	}
}

// The plan says of each job what the deleter then does with it.
func TestAPlanForetellsWhatTheDeleterDoes(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(3, 9))
	policies, jobs := randomPolicies(r), randomJobs(r, 500)
	write(t, s, jobs...)
	plan, err := s.PlanRetention(t.Context(), policies)
	require.NoError(t, err)
	require.InDelta(t, 1, plan.Sampled, 0)
	planned := map[job.Fate]int64{}
	var all, bytes int64
	for _, group := range plan.Groups {
		planned[group.Fate] += group.Jobs
		all += group.Jobs
		bytes += group.Bytes
		require.Equal(t, group.Fate == job.FateOpen, group.Oldest == nil)
	}
	require.EqualValues(t, len(jobs), all)
	require.Greater(t, bytes, 100*all)
	done := sweepAll(t, s, policies, 100)
	for fate, counts := range map[job.Fate]map[job.State]int64{job.FateDelete: done.Deleted, job.FateBlank: done.Blanked} {
		n := int64(0)
		for _, count := range counts {
			n += count
		}
		require.Equal(t, planned[fate], n, fate)
	}
	after, err := s.PlanRetention(t.Context(), policies)
	require.NoError(t, err)
	left := map[job.Fate]int64{}
	for _, group := range after.Groups {
		left[group.Fate] += group.Jobs
	}
	require.Zero(t, left[job.FateDelete])
	require.Equal(t, planned[job.FateBlank], left[job.FateKey])
}
