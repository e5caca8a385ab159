package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submitKeyed submits jobs with concurrency keys, through the service.
func submitKeyed(t testing.TB, p *process, jobs, keys, limit int) {
	t.Helper()
	batch := make([]job.Submission, jobs)
	for i := range batch {
		batch[i] = submission(t, func(s *job.Submission) {
			s.Terms = job.Terms{ConcurrencyKey: fmt.Sprintf("k%d", i%keys), ConcurrencyLimit: limit}
		})
	}
	for _, done := range p.SubmitEach(t.Context(), batch) {
		require.NoError(t, done.Err)
	}
}

func TestAClaimedJobOfAPausedTenantIsParkedAndResumed(t *testing.T) {
	db := fresh(t)
	s := supervise(t, playing("p", 1, succeeds, echo))
	p := launch(t, db, s)
	pause(t, p, job.Pause{Scope: job.PauseTenant, Name: job.DefaultTenant})
	ids := many(t, db, 3) // behind the back of the rules, so they are ready
	p.JobsReady()
	await(t, func() bool { return ask[int](t, db, "select count(*) from parked where lane = 'paused:default'") == 3 })
	require.Empty(t, s.started())
	require.Zero(t, ask[int](t, db, "select count(*) from leases"))
	resume(t, p, job.PauseTenant, job.DefaultTenant)
	awaitAll(t, db, len(ids), job.Succeeded)
	requireSettled(t, db)
}

func TestJobsOfAKeyWaitForOneAnotherAcrossWorkers(t *testing.T) {
	db := fresh(t)
	first, second := supervise(t, playing("p", 4, succeeds, echo)), supervise(t, playing("p", 4, succeeds, echo))
	here, _ := launch(t, db, first), launch(t, db, second)
	submitKeyed(t, here, 200, 5, 2)
	awaitAll(t, db, 200, job.Succeeded)
	requireSettled(t, db)
	await(t, func() bool { return ask[int](t, db, "select count(*) from slots") == 0 }, "no slot is left over")
	require.LessOrEqual(t, ask[int](t, db, `
		select max(together) from (
			select count(*) as together
			from job_attempts a
			join jobs j on j.job_id = a.job_id
			join jobs k on k.gates = j.gates
			join job_attempts b on b.job_id = k.job_id and b.claimed_at <= a.claimed_at and b.ended_at > a.claimed_at
			group by a.job_id, a.fence
		) at_once`), 2, "never three of a key at once")
}

func TestALimitThatIsRaisedLetsJobsGoOn(t *testing.T) {
	db := fresh(t)
	none, some := 0, 3
	_, err := db.SetLimit(t.Context(), job.Limit{Scope: job.LimitKey, Name: "*", Concurrency: &none})
	require.NoError(t, err)
	p := launch(t, db, supervise(t, playing("p", 4, succeeds, echo)))
	submitKeyed(t, p, 10, 1, 0)
	await(t, func() bool { return ask[int](t, db, "select count(*) from wakes") == 0 })
	require.Equal(t, 10, ask[int](t, db, "select count(*) from parked"))
	_, err = p.SetLimit(t.Context(), job.Limit{Scope: job.LimitKey, Name: "*", Concurrency: &some})
	require.NoError(t, err)
	awaitAll(t, db, 10, job.Succeeded)
}

// A round that failed may have taken what was in the inbox all the same: its answer was lost.
func TestLanesAreLookedAtAgainAfterARoundThatFailed(t *testing.T) {
	db := fresh(t)
	p := launch(t, db, supervise(t, playing("p", 1, succeeds, echo)))
	change := func(sql string) {
		_, err := db.pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	change("create sequence failures")
	change(`create function fail() returns trigger language plpgsql as
		$$ begin perform nextval('failures'); raise exception 'it was to fail'; end $$`)
	change("create trigger fails before insert on ready for each row execute function fail()")
	submitKeyed(t, p, 1, 1, 1)
	await(t, func() bool { return ask[bool](t, db, "select is_called from failures") })
	change("delete from wakes")
	change("drop trigger fails on ready")
	awaitAll(t, db, 1, job.Succeeded)
}

// Nobody serves the type, so its job would keep the slot.
func TestAPauseOfATypeFreesTheSlotsOfJobsThatWereNotClaimed(t *testing.T) {
	db := fresh(t)
	one := 1
	_, err := db.SetLimit(t.Context(), job.Limit{Scope: job.LimitTenant, Name: "*", Concurrency: &one})
	require.NoError(t, err)
	p := launch(t, db, supervise(t, playing("p", 1, succeeds, echo)))
	_, err = p.Submit(t.Context(), submission(t, ofType("NOBODYS")))
	require.NoError(t, err)
	await(t, func() bool { return ask[int](t, db, "select count(*) from ready") == 1 })
	_, err = p.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	pause(t, p, job.Pause{Scope: job.PauseType, Name: "NOBODYS"})
	awaitAll(t, db, 1, job.Succeeded)
	require.Equal(t, "stopped:NOBODYS", ask[string](t, db, "select lane from parked"))
}
