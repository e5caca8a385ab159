package store

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func concurrency(scope job.LimitScope, name string, most int) job.Limit {
	return job.Limit{Scope: scope, Name: name, Concurrency: &most}
}

func limitedBy(limits ...job.Limit) *job.Rules { return job.NewRules(limits, nil) }

// parks submits a job with these terms, which waits at its first gate.
func parks(t testing.TB, s *Store, rules *job.Rules, terms job.Terms, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	one := submission(t, changes...)
	one.Terms, one.Gates = terms, rules.Gates(one.Type, one.Tenant, terms)
	return submit(t, s, one)[0]
}

func admitOnce(t testing.TB, s *Store, rules *job.Rules) job.Admission {
	t.Helper()
	done, err := s.Admit(t.Context(), rules)
	require.NoError(t, err)
	return done
}

// admitAll does rounds until nothing is left, and returns how many jobs were admitted.
func admitAll(t testing.TB, s *Store, rules *job.Rules) (admitted int) {
	t.Helper()
	for range 1000 {
		done := admitOnce(t, s, rules)
		admitted += len(done.Admitted)
		if !done.More {
			requireSlots(t.Context(), t, s)
			return admitted
		}
	}
	t.Fatal("rounds without end")
	return 0
}

// Jobs whose only gate is that of their lane are admitted by the statement that reads it.
func TestLanesOfOneGateAreAdmittedWhenTheyAreRead(t *testing.T) {
	perSecond := job.Limit{Scope: job.LimitKey, Name: "customer", Rate: &job.Rate{Count: 100, Period: time.Second, Burst: 100}}
	paused := job.NewRules([]job.Limit{concurrency(job.LimitKey, "customer", 9)}, []job.Pause{{Scope: job.PauseTenant, Name: job.DefaultTenant}})
	for name, c := range map[string]struct {
		rules    *job.Rules
		own      []int // the limits that the jobs set themselves
		atOnce   int
		admitted int
	}{
		"a limit of the class":            {limitedBy(concurrency(job.LimitKey, "customer", 2)), []int{0, 0, 0}, 2, 0},
		"limits of their own":             {nil, []int{2, 2, 2}, 2, 0},
		"both":                            {limitedBy(concurrency(job.LimitKey, "customer", 2)), []int{3, 3, 3}, 2, 0},
		"both, and their own is lower":    {limitedBy(concurrency(job.LimitKey, "customer", 3)), []int{2, 2, 2}, 0, 2},
		"different limits of their own":   {nil, []int{2, 1, 2}, 0, 1},
		"a job type that has a limit too": {limitedBy(concurrency(job.LimitKey, "customer", 3), concurrency(job.LimitType, jobType, 2)), []int{0, 0, 0}, 0, 2},
		"a rate":                          {limitedBy(perSecond), []int{0, 0}, 0, 2},
		"a paused tenant":                 {paused, []int{0, 0}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, own := range c.own {
				parks(t, s, c.rules, job.Terms{ConcurrencyKey: "customer:7", ConcurrencyLimit: own})
			}
			conn, err := s.db.Worker.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			r := &round{conn: conn.Conn(), rules: c.rules}
			require.NoError(t, r.run(t.Context()))
			require.Len(t, r.decided.atOnce, c.atOnce)
			require.Len(t, r.decided.admitted, c.admitted)
			require.Len(t, r.done.Admitted, c.atOnce+c.admitted)
			require.Equal(t, c.atOnce+c.admitted, ask[int](t, s, "select count(*) from ready where admitted_at is not null"))
			requireSlots(t.Context(), t, s)
		})
	}
}

func TestAKeyHasAsManyActiveJobsAsItsLimit(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "customer", 2))
	key := job.Terms{ConcurrencyKey: "customer:7"}
	var ids []job.ID
	for range 5 {
		ids = append(ids, parks(t, s, rules, key))
	}
	require.Equal(t, 2, admitAll(t, s, rules))
	first := claim(t, s, 10)
	require.Len(t, first, 2)
	require.Equal(t, ids[:2], []job.ID{first[0].JobID, first[1].JobID}, "in the order submitted")
	require.Zero(t, admitAll(t, s, rules), "nothing has changed")

	settled(t, s, first[0], job.Success)
	require.Equal(t, 1, admitAll(t, s, rules))
	next := claim(t, s, 10)
	require.Len(t, next, 1)
	require.Equal(t, ids[2], next[0].JobID)

	settled(t, s, next[0], job.Success)
	settled(t, s, first[1], job.Success)
	require.Equal(t, 2, admitAll(t, s, rules))
	for _, c := range claim(t, s, 10) {
		settled(t, s, c, job.Success)
	}
	require.Zero(t, admitAll(t, s, rules))
	require.Zero(t, ask[int](t, s, "select count(*) from slots"), "nothing is left over")
	require.Zero(t, ask[int](t, s, "select count(*) from parked"))
}

func TestAJobsOwnLimitAppliesToItsKey(t *testing.T) {
	s := open(t)
	var none *job.Rules
	key := job.Terms{ConcurrencyKey: "k", ConcurrencyLimit: 3}
	for range 5 {
		parks(t, s, none, key)
	}
	require.Equal(t, 3, admitAll(t, s, none))
	claimed := claim(t, s, 10)
	require.Len(t, claimed, 3)
	for i, next := range []int{1, 1, 0} {
		settled(t, s, claimed[i], job.Success)
		require.Equal(t, next, admitAll(t, s, none))
	}
}

func TestAKeyWithoutALimitStopsNobody(t *testing.T) {
	s := open(t)
	for range 2*minLaneJobs + roundJobs/10 {
		parks(t, s, nil, job.Terms{ConcurrencyKey: "k"})
	}
	require.Equal(t, 2*minLaneJobs+roundJobs/10, admitAll(t, s, nil))
}

func TestAJobWaitsInTheLaneOfTheGateThatStopsIt(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 2), concurrency(job.LimitType, jobType, 3))
	for i := range 4 {
		for range 3 {
			parks(t, s, rules, job.Terms{ConcurrencyKey: "k" + strconv.Itoa(i)})
		}
	}
	require.Equal(t, 3, admitAll(t, s, rules))
	var done int
	for done < 12 {
		claimed := claim(t, s, 10)
		require.LessOrEqual(t, len(claimed), 3)
		require.NotEmpty(t, claimed)
		for _, c := range claimed {
			settled(t, s, c, job.Success)
		}
		done += len(claimed)
		admitAll(t, s, rules)
	}
	require.Zero(t, ask[int](t, s, "select count(*) from slots"))
}

func TestAJobBehindManyThatWaitAtAnotherGateIsFoundSoon(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitTenant, "*", 2), concurrency(job.LimitType, jobType, 0))
	for range 100 {
		parks(t, s, rules, job.Terms{})
	}
	other := parks(t, s, rules, job.Terms{}, func(j *job.Submission) { j.Type = "OTHER" })
	pauses := 0
	for ; parked(t, s, other) != nil; pauses++ {
		require.Less(t, pauses, 3, "rounds")
		exec(t, s, "update slots set wake_at = now() where wake_at <= now() + interval '100 milliseconds'") // as if it had passed
		admitAll(t, s, rules)
	}
	require.Equal(t, 100, ask[int](t, s, "select count(*) from parked where lane = 'type:' || $1", jobType))
}

func TestALaneThatIsReadDeeplyGivesNoMoreSlotsThanThereAre(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitTenant, "*", 2))
	for range 5 {
		parks(t, s, rules, job.Terms{})
	}
	exec(t, s, "insert into slots (gate, used, wake_at) select lane, 0, now() from parked limit 1")
	require.Equal(t, 2, admitAll(t, s, rules))
}

func TestTwoRoundsAtOnceAdmitNoMoreThanOne(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	for range 10 {
		parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	}
	var rounds [8]chan error
	for i := range rounds {
		rounds[i] = make(chan error, 1)
		go func() {
			_, err := s.Admit(t.Context(), rules)
			rounds[i] <- err
		}()
	}
	for _, round := range rounds {
		require.NoError(t, <-round)
	}
	require.Len(t, claim(t, s, 10), 1)
	requireSlots(t.Context(), t, s)
}

func TestARateBoundsStarts(t *testing.T) {
	s := open(t)
	rules := limitedBy(job.Limit{Scope: job.LimitType, Name: jobType, Rate: &job.Rate{Count: 10, Period: time.Hour, Burst: 3}})
	for range 5 {
		parks(t, s, rules, job.Terms{})
	}
	require.Equal(t, 3, admitAll(t, s, rules), "the burst")
	require.Zero(t, admitAll(t, s, rules))
	for _, c := range claim(t, s, 10) {
		settled(t, s, c, job.Success)
	}
	require.Zero(t, admitAll(t, s, rules), "all tokens are charged")
	exec(t, s, "update slots set tokens_at = tokens_at - interval '6 minutes', wake_at = now()")
	require.Equal(t, 1, admitAll(t, s, rules), "a tenth of an hour is one start")
}

func TestAJobThatIsRequeuedBetweenTwoRoundsIsChargedAllTheSame(t *testing.T) {
	for name, again := range map[string]func(*testing.T, *Store, job.ID){
		"requeued": func(t *testing.T, s *Store, id job.ID) {
			_, err := s.Requeue(t.Context(), id)
			require.NoError(t, err)
		},
		"redriven": func(t *testing.T, s *Store, _ job.ID) {
			redriven, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
			require.NoError(t, err)
			require.Len(t, redriven, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			rules := limitedBy(job.Limit{Scope: job.LimitType, Name: jobType, Rate: &job.Rate{Count: 1, Period: time.Hour, Burst: 1}})
			id := parks(t, s, rules, job.Terms{})
			require.Equal(t, 1, admitAll(t, s, rules))
			settled(t, s, claim(t, s, 1)[0], job.PermanentFailure)
			again(t, s, id)
			require.Zero(t, admitAll(t, s, rules), "its second start within the hour")
			require.NotNil(t, parked(t, s, id))
		})
	}
}

func TestTheNewcomerIsCanceledIfItsKeyIsFull(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	terms := job.Terms{ConcurrencyKey: "k", OnConflict: job.ConflictCancelNewcomer}
	first, second := parks(t, s, rules, terms), parks(t, s, rules, terms)
	done := admitOnce(t, s, rules)
	require.Len(t, done.Admitted, 1)
	require.Equal(t, []job.ID{second}, done.Canceled)
	requireState(t, s, first, job.Queued)
	requireState(t, s, second, job.Canceled)
	require.Equal(t, `concurrency key "k" is full (1 of 1), and onConflict is cancel_newcomer`, ask[string](t, s, "select last_error from jobs where job_id = $1", postgres.UUID(second)))
	requireSlots(t.Context(), t, s)
}

func TestTheOldestJobOfAFullKeyMakesRoom(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	terms := job.Terms{ConcurrencyKey: "k", OnConflict: job.ConflictCancelOldest}
	first := parks(t, s, rules, terms)
	require.Equal(t, 1, admitAll(t, s, rules))
	second := parks(t, s, rules, terms)
	require.Equal(t, 1, admitAll(t, s, rules), "the first had not been claimed")
	requireState(t, s, first, job.Canceled)
	running := claim(t, s, 1)
	require.Equal(t, second, running[0].JobID)

	third := parks(t, s, rules, terms)
	done := admitOnce(t, s, rules)
	require.Equal(t, 1, done.CancelAsked)
	require.Empty(t, done.Admitted)
	settled(t, s, running[0], job.CancelConfirmed)
	require.Equal(t, 1, admitAll(t, s, rules))
	require.Equal(t, third, claim(t, s, 1)[0].JobID)
}

func TestARoundSaysThatTheInboxHasMore(t *testing.T) {
	s := open(t)
	require.False(t, admitOnce(t, s, nil).More)
	// Many rows, and few that name many gates.
	for _, rows := range []struct{ number, gates int }{{drainRows + 1, 1}, {3, drainGates - 1}} {
		exec(t, s, `insert into wakes (gates, freed) select (select array_agg('type:' || g) from generate_series(1, $2) g), false
			from generate_series(1, $1)`, rows.number, rows.gates)
		require.True(t, admitOnce(t, s, nil).More)
		require.Equal(t, 1, ask[int](t, s, "select count(*) from wakes"))
		require.False(t, admitOnce(t, s, nil).More)
	}
}

func TestSlotsAreCorrectedAfterAnOrchestratorThatKnowsNoGates(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	second := parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	require.Equal(t, 1, admitAll(t, s, rules))
	settled(t, s, claim(t, s, 1)[0], job.Success)
	exec(t, s, "delete from wakes") // an earlier version writes none
	require.Empty(t, admitOnce(t, s, rules).Admitted, "the slot seems to be used")
	corrected, err := s.Recount(t.Context(), rules)
	require.NoError(t, err)
	require.Equal(t, 1, corrected)
	require.Equal(t, 1, admitAll(t, s, rules))
	require.Equal(t, second, claim(t, s, 1)[0].JobID)
	corrected, err = s.Recount(t.Context(), rules)
	require.NoError(t, err)
	require.Zero(t, corrected)
}

func TestTwoProcessesThatRecountCorrectOnce(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 3))
	for range 4 {
		parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	}
	require.Equal(t, 3, admitAll(t, s, rules))
	settled(t, s, claim(t, s, 1)[0], job.Success)
	exec(t, s, "delete from wakes") // an earlier version writes none
	commit := locked(t, s, "select pg_advisory_xact_lock(4653011)")
	recount := func() int {
		corrected, err := s.Recount(context.Background(), rules)
		assert.NoError(t, err)
		return corrected
	}
	first, second := after(recount), after(recount)
	awaitBlocked(t, s, 2)
	commit()
	require.Equal(t, 1, first()+second())
	require.Equal(t, 1, admitAll(t, s, rules), "there is one slot")
}

func TestAStartOfASlowRateIsRememberedUntilItDoesNotCount(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into admitted (gate, job_id, job_type, urgency, position, admitted_at)
		values ('type:T', gen_random_uuid(), 'T', 0, now(), now() - interval '2 days')`)
	for _, days := range []int{30, 1} {
		rate := &job.Rate{Count: 1, Period: time.Duration(days) * 24 * time.Hour, Burst: 1}
		_, err := s.Recount(t.Context(), limitedBy(job.Limit{Scope: job.LimitType, Name: "T", Rate: rate}))
		require.NoError(t, err)
		require.Equal(t, days > 2, ask[bool](t, s, "select exists (select from admitted)"), "one in %d days", days)
	}
}

func TestWhatNoDecisionDependsOnIsForgotten(t *testing.T) {
	s := open(t)
	rules := limitedBy(job.Limit{Scope: job.LimitType, Name: jobType, Rate: &job.Rate{Count: 1, Period: time.Minute, Burst: 10}})
	exec(t, s, `insert into slots (gate, used, tokens, tokens_at) values
		('type:refilled', 0, 0, now() - interval '11 minutes'), ('type:not', 0, 0, now() - interval '9 minutes'), ('type:used', 1, 0, now() - interval '1 day')`)
	exec(t, s, `insert into turns (job_type, urgency, key, start, finish) values
		('T', 0, '', '2020-01-01', '2020-01-01'), ('T', 0, 'fair:a/', null, '2020-01-01'), ('T', 0, 'fair:b/', null, '2020-01-02')`)
	exec(t, s, `insert into admitted (gate, job_id, job_type, urgency, position, admitted_at) values
		('new:a/k', gen_random_uuid(), 'T', 0, now(), now() - interval '2 days'), ('new:a/k', gen_random_uuid(), 'T', 0, now(), now())`)
	id := given(t, s)
	exec(t, s, "update jobs set gates = '{type:used}' where job_id = $1", postgres.UUID(id))
	_, err := s.Recount(t.Context(), rules)
	require.NoError(t, err)
	require.Equal(t, []string{"type:not", "type:used"}, ask[[]string](t, s, "select array_agg(gate order by gate) from slots"))
	require.Equal(t, []string{"", "fair:b/"}, ask[[]string](t, s, "select array_agg(key order by key) from turns"))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from admitted"))
}

// A job that asks to cancel the oldest does so whatever the others asked for, once they run.
func TestTheOldestRunningJobMakesRoomEvenIfItAskedToQueue(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	parks(t, s, rules, job.Terms{ConcurrencyKey: "k"})
	require.Equal(t, 1, admitAll(t, s, rules))
	running := claim(t, s, 1)
	other := parks(t, s, rules, job.Terms{ConcurrencyKey: "other"})
	require.Equal(t, 1, admitAll(t, s, rules))
	require.Equal(t, other, claim(t, s, 1)[0].JobID)

	parks(t, s, rules, job.Terms{ConcurrencyKey: "k", OnConflict: job.ConflictCancelOldest})
	require.Equal(t, 1, admitOnce(t, s, rules).CancelAsked)
	require.Equal(t, `made room for a newer job: concurrency key "k" was full, and its onConflict is cancel_oldest`,
		ask[string](t, s, "select last_error from jobs where job_id = $1", postgres.UUID(running[0].JobID)))
	settled(t, s, running[0], job.CancelConfirmed)
	requireState(t, s, running[0].JobID, job.Canceled)
	requireState(t, s, other, job.Running)
	requireSlots(t.Context(), t, s)
}

func TestJobsOfAPausedTypeTakeNoSlotsOfOthers(t *testing.T) {
	s := open(t)
	limit := concurrency(job.LimitTenant, job.EveryName, 2)
	pause := job.Pause{Scope: job.PauseType, Name: jobType}
	paused := job.NewRules([]job.Limit{limit}, []job.Pause{pause})
	for range 5 {
		parks(t, s, paused, job.Terms{ConcurrencyKey: "acct:7"})
	}
	other := parks(t, s, paused, job.Terms{}, func(j *job.Submission) { j.Type, j.Priority = "OTHER", -1 })
	require.Equal(t, 1, admitAll(t, s, paused))
	require.Nil(t, parked(t, s, other))
	require.Equal(t, 5, ask[int](t, s, "select count(*) from parked where lane = $1", "stopped:"+jobType))
	require.Equal(t, 1, ask[int](t, s, "select used from slots where gate = 'tenant:default'"))

	_, err := s.WakeLanes(t.Context())
	require.NoError(t, err)
	require.Zero(t, admitAll(t, s, paused), "the pause lasts")
	_, err = s.WakeLanes(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, admitAll(t, s, limitedBy(limit)), "the pause is over")
	require.Zero(t, ask[int](t, s, "select count(*) from parked where lane like 'stopped:%'"))
}

func TestJobsOfAPausedTypeThatWereNotClaimedGiveTheirSlotsBack(t *testing.T) {
	s := open(t)
	limit := concurrency(job.LimitTenant, job.EveryName, 3)
	rules := limitedBy(limit)
	parks(t, s, rules, job.Terms{}, func(j *job.Submission) { j.Priority = 1 })
	turn := parks(t, s, rules, job.Terms{FairnessKey: "f", ConcurrencyKey: "acct:7", ConcurrencyLimit: 2})
	plain := parks(t, s, rules, job.Terms{})
	other := parks(t, s, rules, job.Terms{}, func(j *job.Submission) { j.Type, j.Priority = "OTHER", -1 })
	ungated := submit(t, s, submission(t, func(j *job.Submission) { j.Tenant = "free" }))[0]
	require.Equal(t, 3, admitAll(t, s, rules))
	running := claim(t, s, 1)
	require.Len(t, running, 1)

	count, err := s.ParkReady(t.Context(), []string{jobType, "NOBODYS"}, 10)
	require.NoError(t, err)
	require.Equal(t, 2, count)
	for _, id := range []job.ID{turn, plain} {
		require.Equal(t, "stopped:"+jobType, parked(t, s, id).Lane)
	}
	own := 2
	require.Equal(t, &own, parked(t, s, turn).Capacity)
	paused := job.NewRules([]job.Limit{limit}, []job.Pause{{Scope: job.PauseType, Name: jobType}})
	require.Equal(t, 1, admitAll(t, s, paused))
	require.Nil(t, parked(t, s, other))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from ready where job_id = $1", [16]byte(ungated)), "the claim leaves it alone")
	count, err = s.ParkReady(t.Context(), []string{jobType}, 10)
	require.NoError(t, err)
	require.Zero(t, count)

	_, err = s.WakeLanes(t.Context())
	require.NoError(t, err)
	settled(t, s, running[0], job.Success)
	require.Equal(t, 2, admitAll(t, s, rules), "the pause is over")
}

// Lanes of one gate are not admitted when they are read while a type is paused.
func TestJobsOfAPausedTypeTakeNoSlotsOfALaneWithOneGate(t *testing.T) {
	s := open(t)
	limits := []job.Limit{concurrency(job.LimitKey, "acct", 2)}
	paused := job.NewRules(limits, []job.Pause{{Scope: job.PauseType, Name: jobType}})
	parks(t, s, paused, job.Terms{ConcurrencyKey: "acct:7"})
	require.Zero(t, admitAll(t, s, paused))
	require.Zero(t, ask[int](t, s, "select count(*) from slots"))
}

func TestNothingIsAdmittedWhileEverythingIsPaused(t *testing.T) {
	s := open(t)
	limits := []job.Limit{concurrency(job.LimitTenant, job.EveryName, 2)}
	paused := job.NewRules(limits, []job.Pause{{Scope: job.PauseAll}})
	id := parks(t, s, paused, job.Terms{FairnessKey: "f"})
	require.Zero(t, admitAll(t, s, paused))
	require.Equal(t, "fair:default/f", parked(t, s, id).Lane)
	_, err := s.WakeLanes(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, admitAll(t, s, limitedBy(limits...)))
}
