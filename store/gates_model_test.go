package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Jobs with all kinds of terms are submitted, admitted, claimed, settled and canceled in
// random order, while limits and pauses change, rounds of admission fail at any statement,
// and answers are lost. After each step, what the gates promise must hold. In the end, all
// jobs must be done.
func TestGatesKeepTheirPromises(t *testing.T) {
	s := open(t)
	failOnDemand(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		_, err := s.db.Worker.Exec(t.Context(), `truncate jobs, ready, parked, leases, timers, dead_letters, unsuccessful_attempts,
			wakes, slots, admitted, turns, tallies`)
		require.NoError(rt, err)
		m := &gatesModel{T: rt, test: t, ctx: t.Context(), store: s, active: make(map[string]int), starts: make(map[job.Gate][]time.Time)}
		m.change(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"submit": m.submit,
			"admit":  m.admit,
			"settled": func(t *rapid.T) {
				m.claim(t)
				m.settle(t)
			},
			"claim":   m.claim,
			"settle":  m.settle,
			"cancel":  m.cancel,
			"change":  m.change,
			"pass":    m.pass,
			"recount": m.recount,
			"idle":    m.idle,
		})
		m.drain()
	})
}

// failOnDemand makes the statement fail that the table `failing` names: a verb and a table.
func failOnDemand(t *testing.T, s *Store) {
	t.Helper()
	exec(t, s, "create table failing (statement text)")
	exec(t, s, `create function fail() returns trigger language plpgsql as $$
		begin
			if exists (select from failing where statement = tg_op || ' ' || tg_table_name) then
				raise exception 'it was to fail';
			end if;
			return null;
		end $$`)
	for _, table := range []string{"ready", "parked", "slots", "wakes", "admitted", "turns", "jobs"} {
		exec(t, s, fmt.Sprintf("create trigger fails after insert or update or delete on %s for each statement execute function fail()", table))
	}
}

// otherType is a job type of the model that may be paused.
const otherType = "OTHER"

type gatesModel struct {
	*rapid.T
	test  *testing.T
	ctx   context.Context
	store *Store

	rules   *job.Rules
	claimed []job.Claimed
	// active is how many jobs held a slot of each gate before the last step.
	active map[string]int
	// starts are when jobs were claimed that were admitted under the rules, by gates with a
	// rate. Earlier ones were ready already.
	starts  map[job.Gate][]time.Time
	earlier [][16]byte
}

func (m *gatesModel) exec(sql string, args ...any) {
	_, err := m.store.db.Worker.Exec(m.ctx, sql, args...)
	require.NoError(m, err)
}

func (m *gatesModel) ask(sql string, args ...any) (n int) {
	require.NoError(m, m.store.db.Worker.QueryRow(m.ctx, sql, args...).Scan(&n))
	return n
}

func (m *gatesModel) change(t *rapid.T) {
	var limits []job.Limit
	var pauses []job.Pause
	for _, of := range []struct {
		scope job.LimitScope
		name  string
	}{{job.LimitKey, "class"}, {job.LimitKey, job.EveryName}, {job.LimitTenant, "a"}, {job.LimitType, jobType}} {
		one := job.Limit{Scope: of.scope, Name: of.name}
		kind := rapid.SampledFrom([]string{"none", "none", "concurrency", "concurrency", "rate", "both"}).Draw(t, "limit of "+of.name)
		if kind == "concurrency" || kind == "both" {
			most := rapid.IntRange(0, 3).Draw(t, "concurrency")
			one.Concurrency = &most
		}
		if kind == "rate" || kind == "both" {
			one.Rate = &job.Rate{Count: rapid.IntRange(1, 3).Draw(t, "rate"), Period: time.Minute, Burst: rapid.IntRange(1, 3).Draw(t, "burst")}
		}
		if of.scope == job.LimitKey {
			one.OnConflict = rapid.SampledFrom([]job.OnConflict{"", "", job.ConflictCancelNewcomer, job.ConflictCancelOldest}).Draw(t, "on conflict")
		}
		if kind != "none" {
			limits = append(limits, one)
		}
	}
	limits = append(limits, job.Limit{Scope: job.LimitFairness, Name: "f", Weight: 2})
	if rapid.Bool().Draw(t, "paused") {
		pauses = append(pauses, job.Pause{Scope: job.PauseTenant, Name: "a"})
	}
	if rapid.IntRange(0, 3).Draw(t, "type paused") == 0 {
		pauses = append(pauses, job.Pause{Scope: job.PauseType, Name: otherType})
	}
	m.follow(job.NewRules(limits, pauses))
}

// follow puts rules in force. A new rate holds for the jobs that are admitted from now on.
func (m *gatesModel) follow(rules *job.Rules) {
	m.rules = rules
	m.starts = make(map[job.Gate][]time.Time)
	rows, err := m.store.db.Worker.Query(m.ctx, "select job_id from ready")
	require.NoError(m, err)
	m.earlier, err = pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	require.NoError(m, err)
	_, err = m.store.WakeLanes(m.ctx)
	require.NoError(m, err)
}

func (m *gatesModel) submit(t *rapid.T) {
	batch := make([]job.Submission, rapid.IntRange(1, 3).Draw(t, "jobs"))
	for i := range batch {
		one := submission(m.test)
		one.Type = rapid.SampledFrom([]string{jobType, otherType}).Draw(t, "type")
		one.Tenant = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")
		one.Priority = rapid.Int16Range(0, 1).Draw(t, "priority")
		one.MaxAttempts = 2
		one.Terms = job.Terms{
			ConcurrencyKey: rapid.SampledFrom([]string{"", "class:1", "class:2", "k"}).Draw(t, "key"),
			FairnessKey:    rapid.SampledFrom([]string{"", "", "f", "g"}).Draw(t, "fairness"),
		}
		if one.Terms.ConcurrencyKey != "" {
			one.Terms.ConcurrencyLimit = rapid.IntRange(0, 2).Draw(t, "own limit")
			one.Terms.OnConflict = rapid.SampledFrom([]job.OnConflict{"", "", "", job.ConflictCancelNewcomer, job.ConflictCancelOldest}).Draw(t, "on conflict")
		}
		one.Gates = m.rules.Gates(one.Type, one.Tenant, one.Terms)
		batch[i] = one
	}
	submit(m.test, m.store, batch...)
}

// admit does a round, which may fail at a statement. Its answer may be lost: nothing uses
// it.
func (m *gatesModel) admit(t *rapid.T) {
	failing := rapid.SampledFrom([]string{
		"", "", "", "DELETE wakes", "INSERT wakes", "DELETE parked", "INSERT ready", "UPDATE parked", "INSERT slots", "UPDATE slots",
		"DELETE slots", "INSERT admitted", "DELETE admitted", "INSERT turns", "UPDATE jobs",
	}).Draw(t, "failing")
	m.exec("insert into failing values ($1)", failing)
	_, err := m.store.Admit(m.ctx, m.rules)
	m.exec("delete from failing")
	if err != nil {
		require.ErrorContains(t, err, "it was to fail")
		require.NotEmpty(t, failing)
	}
}

func (m *gatesModel) claim(t *rapid.T) {
	m.store.marks = newLowWaterMarks()
	types := []string{jobType, otherType}
	if _, paused := m.rules.Pause(job.PauseType, otherType); paused {
		types = types[:1]
	}
	claimed, err := m.store.Claim(m.ctx, worker, types, rapid.IntRange(1, 4).Draw(t, "claim"), aMinute)
	require.NoError(t, err)
	m.started(claimed)
}

// started parks the jobs that may not start, as a worker does, and keeps the others.
func (m *gatesModel) started(claimed []job.Claimed) {
	for _, c := range claimed {
		if next, held := m.rules.Held(c.Type, c.Tenant, c.Gates()); held {
			results, err := m.store.Park(m.ctx, []job.Parking{{Lease: c.Lease, Gates: next}})
			require.NoError(m, err)
			if results[0] == job.Settled {
				continue
			}
		}
		m.claimed = append(m.claimed, c)
		if i := slices.Index(m.earlier, [16]byte(c.JobID)); i >= 0 {
			m.earlier = slices.Delete(m.earlier, i, i+1)
			continue
		}
		for _, gate := range c.Gates() {
			if limit, found := m.rules.Limit(gate); found && limit.Rate != nil {
				m.starts[gate] = append(m.starts[gate], c.ClaimedAt)
			}
		}
	}
}

func (m *gatesModel) settle(t *rapid.T) {
	if len(m.claimed) == 0 {
		t.Skip("nothing runs")
	}
	i := rapid.IntRange(0, len(m.claimed)-1).Draw(t, "attempt")
	kind := rapid.SampledFrom([]job.OutcomeKind{
		job.Success, job.Success, job.Failure, job.PermanentFailure, job.Released, job.Snoozed,
	}).Draw(t, "outcome")
	m.end(i, kind)
}

func (m *gatesModel) end(i int, kind job.OutcomeKind) {
	c := m.claimed[i]
	m.claimed = slices.Delete(m.claimed, i, i+1)
	settle := func(kind job.OutcomeKind) job.SettleResult {
		results, err := m.store.Settle(m.ctx, []job.Settlement{as(c, kind)})
		require.NoError(m, err)
		return results[0]
	}
	result := settle(kind)
	if result == job.Canceling {
		result = settle(job.CancelConfirmed)
	}
	require.Equal(m, job.Settled, result)
}

func (m *gatesModel) cancel(t *rapid.T) {
	var ids [][16]byte
	rows, err := m.store.db.Worker.Query(m.ctx, "select job_id from jobs where state in ('created', 'queued', 'retry') order by job_id")
	require.NoError(t, err)
	ids, err = pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	require.NoError(t, err)
	if len(ids) == 0 {
		t.Skip("no job yet")
	}
	_, err = m.store.Cancel(m.ctx, ids[rapid.IntRange(0, len(ids)-1).Draw(t, "job")])
	require.NoError(t, err)
}

// pass lets time pass: all that the gates remember is that much longer ago.
func (m *gatesModel) pass(t *rapid.T) {
	m.wait(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
}

func (m *gatesModel) wait(d time.Duration) {
	m.exec("update slots set tokens_at = tokens_at - $1::interval, wake_at = wake_at - $1::interval", d)
	m.exec("update admitted set admitted_at = admitted_at - $1::interval", d)
	m.exec("update leases set claimed_at = claimed_at - $1::interval", d)
	m.exec("update jobs set started_at = started_at - $1::interval where started_at is not null", d)
	m.exec(`with moved as (update timers set run_at = run_at - $1::interval where run_at < 'infinity' returning job_id, run_at)
		update jobs j set run_at = m.run_at from moved m where m.job_id = j.job_id`, d)
	for gate, starts := range m.starts {
		for i := range starts {
			m.starts[gate][i] = starts[i].Add(-d)
		}
	}
	_, err := m.store.Promote(m.ctx, 100)
	require.NoError(m, err)
}

// recount repairs what an orchestrator did that knows nothing of gates.
func (m *gatesModel) recount(t *rapid.T) {
	m.exec("update slots set used = greatest(used + $1, 0)", rapid.IntRange(-1, 2).Draw(t, "miscounted"))
	_, err := m.store.Recount(m.ctx, m.rules)
	require.NoError(t, err)
}

// idle does rounds until nothing is left. Then the first job of each lane waits for a
// reason.
func (m *gatesModel) idle(*rapid.T) {
	m.rounds()
	rows, err := m.store.db.Worker.Query(m.ctx, `
		select distinct on (p.lane) p.lane, coalesce(p.capacity, 0)::int as capacity, coalesce(s.used, 0) as used, s.wake_at is not null as looked_at_later
		from parked p left join slots s on s.gate = p.lane
		order by p.lane, p.urgency, p.position, p.job_id`)
	require.NoError(m, err)
	type first struct {
		Lane           job.Gate
		Capacity, Used int
		LookedAtLater  bool
	}
	lanes, err := pgx.CollectRows(rows, pgx.RowToStructByName[first])
	require.NoError(m, err)
	for _, lane := range lanes {
		if lane.Lane.Kind() == job.GatePaused {
			_, paused := m.rules.Pause(job.PauseTenant, lane.Lane.Name())
			require.True(m, paused, "%v", lane)
			continue
		}
		if lane.Lane.Kind() == job.GateStopped {
			_, paused := m.rules.Pause(job.PauseType, lane.Lane.Name())
			require.True(m, paused, "%v", lane)
			continue
		}
		require.True(m, lane.Lane.Counts(), "%v is a lane that jobs only pass through", lane)
		limit, _ := m.rules.Limit(lane.Lane)
		g := &gateState{used: lane.Used, limit: limit}
		// Only the jobs of a key know its limit. One that allows more than the job before it may
		// wait for the next slot that is freed.
		own := lane.Lane.Kind() == job.GateKey && lane.Used > 0
		require.True(m, g.full(lane.Capacity) || lane.LookedAtLater || own, "%v has room", lane)
	}
}

func (m *gatesModel) rounds() {
	for range 200 {
		done, err := m.store.Admit(m.ctx, m.rules)
		require.NoError(m, err)
		m.check(m.T)
		if !done.More {
			return
		}
	}
	m.Fatal("rounds without end")
}

// drain does all jobs.
func (m *gatesModel) drain() {
	one := 1
	m.follow(job.NewRules([]job.Limit{{Scope: job.LimitKey, Name: job.EveryName, Concurrency: &one}}, nil))
	for range 300 {
		m.rounds()
		m.store.marks = newLowWaterMarks()
		claimed, err := m.store.Claim(m.ctx, worker, []string{jobType, otherType}, 100, aMinute)
		require.NoError(m, err)
		m.started(claimed)
		for len(m.claimed) > 0 {
			m.end(0, job.Success)
		}
		if m.ask("select count(*) from jobs where state in ('created', 'queued', 'retry')") == 0 {
			m.rounds()
			require.Zero(m, m.ask("select count(*) from slots where used > 0"), "slots are left over")
			require.Zero(m, m.ask("select count(*) from parked"))
			return
		}
		m.wait(time.Hour)
	}
	m.Fatal("some jobs are stuck")
}

func (m *gatesModel) check(*rapid.T) {
	requireSlots(m.ctx, m, m.store)
	disagreements, err := audit(m.ctx, m.store, 10)
	require.NoError(m, err)
	require.Empty(m, disagreements)
	m.checkLimits()
	for gate, starts := range m.starts {
		limit, _ := m.rules.Limit(gate)
		requireRate(m, starts, limit.Rate)
	}
}

// checkLimits checks that no gate has more active jobs than its limit, unless it had as
// many before.
func (m *gatesModel) checkLimits() {
	rows, err := m.store.db.Worker.Query(m.ctx, `
		select gate, count(*)::int as active
		from (select job_id from ready union all select job_id from leases) l
		join jobs j using (job_id) cross join unnest(j.gates) gate
		group by gate`)
	require.NoError(m, err)
	type row struct {
		Gate   string
		Active int
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	require.NoError(m, err)
	before := m.active
	m.active = make(map[string]int)
	for _, gate := range found {
		m.active[gate.Gate] = gate.Active
		if limit, known := m.rules.Limit(job.Gate(gate.Gate)); known && limit.Concurrency != nil {
			require.LessOrEqual(m, gate.Active, max(*limit.Concurrency, before[gate.Gate]), gate.Gate)
		}
	}
}

// requireRate checks that no window has more starts than the rate allows.
func requireRate(t require.TestingT, starts []time.Time, rate *job.Rate) {
	sorted := slices.SortedFunc(slices.Values(starts), time.Time.Compare)
	for i := range sorted {
		for j := i; j < len(sorted); j++ {
			allowed := float64(rate.Burst) + sorted[j].Sub(sorted[i]).Seconds()*perSecond(rate)
			require.LessOrEqual(t, float64(j-i+1), allowed+1e-6, "starts in %s", sorted[j].Sub(sorted[i]))
		}
	}
}
