package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func rules(t testing.TB, s *Store) *job.Rules {
	t.Helper()
	found, _, err := s.Rules(t.Context())
	require.NoError(t, err)
	return found
}

func setLimit(t testing.TB, s *Store, limit job.Limit) job.Limit {
	t.Helper()
	set, err := s.SetLimit(t.Context(), limit)
	require.NoError(t, err)
	return set
}

// parkedIn parks a job that the ledger need not have.
func parkedIn(t testing.TB, s *Store, lanes ...string) {
	t.Helper()
	for _, lane := range lanes {
		exec(t, s, `insert into parked (job_id, lane, urgency, position, job_type, tenant, gates)
			values (gen_random_uuid(), $1, 0, now(), 'ECHO', 'default', array[$1])`, lane)
	}
}

// woken empties the inbox and returns the lanes in it, sorted.
func woken(t testing.TB, s *Store) []string {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), `with read as (delete from wakes returning gates, freed)
		select gate from read, unnest(gates) as gate where not freed order by gate collate "C"`)
	require.NoError(t, err)
	lanes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return lanes
}

func TestALimitIsReadAsItWasSet(t *testing.T) {
	s := open(t)
	require.Equal(t, job.NewRules(nil, nil), rules(t, s))
	for _, limit := range []job.Limit{
		{Scope: job.LimitFairness, Name: "premium", Weight: 3},
		{
			Scope: job.LimitKey, Name: "smtp", Concurrency: new(3), OnConflict: job.ConflictCancelOldest,
			Rate: &job.Rate{Count: 100, Period: time.Minute, Burst: 10}, UpdatedBy: "ann",
		},
		{Scope: job.LimitTenant, Name: job.EveryName, Concurrency: new(0), Weight: 1000},
		{Scope: job.LimitType, Name: "SEND_EMAIL", Fair: true},
	} {
		set := setLimit(t, s, limit)
		require.NotZero(t, set.UpdatedAt)
		limit.UpdatedAt = set.UpdatedAt
		require.Equal(t, limit, set)
		require.Contains(t, rules(t, s).Limits(), limit)
	}
	require.Len(t, rules(t, s).Limits(), 4)

	changed := setLimit(t, s, job.Limit{Scope: job.LimitKey, Name: "smtp", Concurrency: new(4)})
	require.Contains(t, rules(t, s).Limits(), changed, "nothing of the old one is left")
	require.NoError(t, s.DeleteLimit(t.Context(), job.LimitKey, "smtp"))
	require.ErrorIs(t, s.DeleteLimit(t.Context(), job.LimitKey, "smtp"), job.ErrNoLimit)
	require.Len(t, rules(t, s).Limits(), 3)
}

func TestWhatTheConfigurationLimitsNobodyElseChanges(t *testing.T) {
	s := open(t)
	setLimit(t, s, job.Limit{Scope: job.LimitType, Name: "A", Concurrency: new(1), UpdatedBy: "ann"})
	setLimit(t, s, job.Limit{Scope: job.LimitType, Name: "API", Concurrency: new(1)})
	sync := func(limits ...job.Limit) []job.LimitChange {
		changed, err := s.SyncLimits(t.Context(), limits)
		require.NoError(t, err)
		return changed
	}
	change := func(limit job.Limit, removed bool) job.LimitChange {
		return job.LimitChange{Scope: limit.Scope, Name: limit.Name, Removed: removed}
	}
	a, b := job.Limit{Scope: job.LimitType, Name: "A", Concurrency: new(2)}, job.Limit{Scope: job.LimitTenant, Name: "b", Weight: 2}
	woken(t, s)
	require.ElementsMatch(t, []job.LimitChange{change(a, false), change(b, false)}, sync(a, b))
	require.Equal(t, []string{"tenant:b", "type:A"}, woken(t, s))
	require.Empty(t, sync(b, a), "the same again")
	require.Empty(t, woken(t, s))

	_, err := s.SetLimit(t.Context(), job.Limit{Scope: job.LimitType, Name: "A", Concurrency: new(3)})
	require.ErrorIs(t, err, job.ErrConfigured)
	require.ErrorIs(t, s.DeleteLimit(t.Context(), job.LimitType, "A"), job.ErrConfigured)
	require.Empty(t, woken(t, s))
	limit, _ := rules(t, s).Limit(job.NewGate(job.GateType, "", "A"))
	require.Equal(t, new(2), limit.Concurrency)
	require.True(t, limit.Configured)
	require.Empty(t, limit.UpdatedBy)

	require.Equal(t, []job.LimitChange{change(a, true)}, sync(b), "A is not configured any more")
	require.Equal(t, []string{"type:A"}, woken(t, s))
	require.Equal(t, []job.LimitChange{change(b, true)}, sync())
	require.Len(t, rules(t, s).Limits(), 1, "a limit of the API stays")
}

func TestALimitThatChangesWakesTheLanesThatItBounds(t *testing.T) {
	s := open(t)
	key := func(owner, name string) string { return string(job.NewGate(job.GateKey, owner, name)) }
	mail, plain, strange := key("default", "smtp:a"), key("default", "smtp"), key("smtp:x/y", "fax:smtp:b")
	parkedIn(t, s, "type:A", "type:A", "type:B", "tenant:a", mail, mail, plain, strange, "fair:default/", "paused:a", "typed")
	for _, c := range []struct {
		scope job.LimitScope
		name  string
		lanes []string
	}{
		{job.LimitType, "A", []string{"type:A"}},
		{job.LimitType, "NOBODY", []string{"type:NOBODY"}},
		{job.LimitType, "*", []string{"type:A", "type:B"}},
		{job.LimitTenant, "a", []string{"tenant:a"}},
		{job.LimitTenant, "*", []string{"tenant:a"}},
		{job.LimitKey, "smtp", []string{plain, mail}},
		{job.LimitKey, "fax", []string{strange}},
		{job.LimitKey, "*", []string{plain, mail, strange}},
		{job.LimitFairness, "a", nil},
		{job.LimitFairness, "*", nil},
	} {
		t.Run(fmt.Sprint(c.scope, " ", c.name), func(t *testing.T) {
			setLimit(t, s, job.Limit{Scope: c.scope, Name: c.name, Weight: 2})
			require.ElementsMatch(t, c.lanes, woken(t, s), "set")
			require.NoError(t, s.DeleteLimit(t.Context(), c.scope, c.name))
			require.ElementsMatch(t, c.lanes, woken(t, s), "deleted")
		})
	}
}

func TestEachOfManyLanesIsWokenOnce(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into parked (job_id, lane, urgency, position, job_type, tenant, gates)
		select gen_random_uuid(), 'key:default/k' || i / 2, 0, now(), 'ECHO', 'default', '{}' from generate_series(0, 4999) as i`)
	setLimit(t, s, job.Limit{Scope: job.LimitKey, Name: job.EveryName, Concurrency: new(1)})
	require.Equal(t, 3, ask[int](t, s, "select count(*) from wakes"), "in rows of a thousand")
	lanes := woken(t, s)
	require.Len(t, lanes, 2500)
	require.Equal(t, "key:default/k0", lanes[0])
}

func TestAPauseIsReadAsItWasSet(t *testing.T) {
	s := open(t)
	pause := job.Pause{Scope: job.PauseType, Name: "A", Reason: "migration", By: "ann", Drain: true}
	set, err := s.SetPause(t.Context(), pause, 0)
	require.NoError(t, err)
	require.NotZero(t, set.Since)
	pause.Since = set.Since
	require.Equal(t, pause, set)
	require.Equal(t, []job.Pause{set}, rules(t, s).Pauses())

	later, err := s.SetPause(t.Context(), job.Pause{Scope: job.PauseType, Name: "A", By: "bob"}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, set.Since, later.Since, "it has been paused since then")
	require.WithinDuration(t, ask[time.Time](t, s, "select now() + interval '1 hour'"), later.Until, time.Minute)
	require.Equal(t, []job.Pause{later}, rules(t, s).Pauses())

	until := later.Until.Add(time.Hour)
	all, err := s.SetPause(t.Context(), job.Pause{Scope: job.PauseAll, Until: until}, 0)
	require.NoError(t, err)
	require.Equal(t, until, all.Until)
	require.Equal(t, []job.Pause{all, later}, rules(t, s).Pauses())

	require.NoError(t, s.EndPause(t.Context(), job.PauseAll, ""))
	require.NoError(t, s.EndPause(t.Context(), job.PauseType, "A"))
	require.ErrorIs(t, s.EndPause(t.Context(), job.PauseType, "A"), job.ErrNoPause)
	require.Empty(t, woken(t, s), "only tenants have a lane")
}

func TestTheLaneOfATenantIsWokenWhenItsPauseEnds(t *testing.T) {
	s := open(t)
	for _, tenant := range []string{"a", "b", "c"} {
		_, err := s.SetPause(t.Context(), job.Pause{Scope: job.PauseTenant, Name: tenant}, time.Hour)
		require.NoError(t, err)
	}
	require.NoError(t, s.EndPause(t.Context(), job.PauseTenant, "a"))
	require.Equal(t, []string{"paused:a"}, woken(t, s))

	exec(t, s, "update pauses set until = now() where name = 'b'")
	found, expired, err := s.Rules(t.Context())
	require.NoError(t, err)
	require.True(t, expired)
	require.Len(t, found.Pauses(), 1)
	ended, err := s.EndExpiredPauses(t.Context())
	require.NoError(t, err)
	require.Equal(t, []job.Pause{{Scope: job.PauseTenant, Name: "b"}}, ended)
	require.Equal(t, []string{"paused:b"}, woken(t, s))
	_, expired, err = s.Rules(t.Context())
	require.NoError(t, err)
	require.False(t, expired)
	ended, err = s.EndExpiredPauses(t.Context())
	require.NoError(t, err)
	require.Empty(t, ended)
	require.Empty(t, woken(t, s))
}

// A pause that is over but still there is not continued by the next.
func TestAPauseAfterOneThatIsOverBeginsAnew(t *testing.T) {
	s := open(t)
	first, err := s.SetPause(t.Context(), job.Pause{Scope: job.PauseAll}, time.Hour)
	require.NoError(t, err)
	exec(t, s, "update pauses set until = now()")
	second, err := s.SetPause(t.Context(), job.Pause{Scope: job.PauseAll}, 0)
	require.NoError(t, err)
	require.True(t, second.Since.After(first.Since))
}
