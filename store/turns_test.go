package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fairly is a type whose tenants take turns, with the weights of tenants.
func fairly(weights map[string]int) *job.Rules {
	limits := []job.Limit{{Scope: job.LimitType, Name: jobType, Fair: true}}
	for tenant, weight := range weights {
		limits = append(limits, job.Limit{Scope: job.LimitTenant, Name: tenant, Weight: weight})
	}
	return job.NewRules(limits, nil)
}

func of(tenant string) func(*job.Submission) {
	return func(j *job.Submission) { j.Tenant = tenant }
}

// queued submits jobs of the tenant, which go through the gates of the rules.
func queued(t testing.TB, s *Store, rules *job.Rules, tenant string, jobs int) {
	t.Helper()
	submit(t, s, submissions(t, jobs, of(tenant), func(j *job.Submission) { j.Gates = rules.Gates(j.Type, j.Tenant, j.Terms) })...)
}

// turns claims jobs and counts them by tenant.
func turns(t testing.TB, s *Store, jobs int) map[string]int {
	t.Helper()
	taken := make(map[string]int)
	for _, c := range claim(t, s, jobs) {
		taken[c.Tenant]++
	}
	return taken
}

func TestATenantDoesNotWaitBehindTheFloodOfAnother(t *testing.T) {
	s := open(t)
	rules := fairly(nil)
	queued(t, s, rules, "flood", 3000)
	admitAll(t, s, rules)
	claim(t, s, 100)
	queued(t, s, rules, "other", 5)
	require.Equal(t, 5, admitAll(t, s, rules))
	require.Equal(t, map[string]int{"flood": 6, "other": 5}, turns(t, s, 11), "they take turns from now on")
	require.Equal(t, map[string]int{"flood": 100}, turns(t, s, 100), "a lone one gets everything")
}

func TestAFloodInOneLaneDoesNotDelayTheOthers(t *testing.T) {
	s := open(t)
	rules := fairly(nil)
	queued(t, s, rules, "flood", 3000)
	queued(t, s, rules, "other", 1)
	admitOnce(t, s, rules)
	require.Equal(t, 1, ask[int](t, s, "select count(*) from ready r join jobs j using (job_id) where j.tenant = 'other'"), "in the first round")
}

func TestTenantsShareByWeight(t *testing.T) {
	for name, rules := range map[string]*job.Rules{
		"without a limit": fairly(map[string]int{"heavy": 3}),
		"within a limit": job.NewRules(append(fairly(map[string]int{"heavy": 3}).Limits(), concurrency(job.LimitTenant, "*", 1000),
			concurrency(job.LimitKey, "*", 1000)), nil),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			queued(t, s, rules, "heavy", 900)
			admitAll(t, s, rules)
			queued(t, s, rules, "light", 900)
			admitAll(t, s, rules)
			require.InEpsilon(t, 300, turns(t, s, 400)["heavy"], 0.05)
			queued(t, s, rules, "light", 100)
			queued(t, s, rules, "heavy", 100)
			admitAll(t, s, rules)
			require.InEpsilon(t, 300, turns(t, s, 400)["heavy"], 0.05)
		})
	}
}

// The turn counts where jobs wait for a slot, too.
func TestTenantsTakeTurnsAtALimit(t *testing.T) {
	s := open(t)
	limits := fairly(map[string]int{"heavy": 3}).Limits()
	ten := 10
	limits[len(limits)-1].Concurrency = &ten // the type's
	rules := job.NewRules(limits, nil)
	queued(t, s, rules, "heavy", 500)
	admitAll(t, s, rules)
	queued(t, s, rules, "light", 500)
	admitAll(t, s, rules)
	taken := make(map[string]int)
	for range 40 {
		claimed := claim(t, s, 100)
		require.Len(t, claimed, 10)
		for _, c := range claimed {
			taken[c.Tenant]++
			settled(t, s, c, job.Success)
		}
		admitAll(t, s, rules)
	}
	require.InEpsilon(t, 300, taken["heavy"], 0.05)
}

// In a type that is not fair, it waits until its due time is reached: behind the flood.
func TestAJobWithoutAFairnessKeyHasATurnIfItsTypeIsFair(t *testing.T) {
	for name, tt := range map[string]struct {
		rules *job.Rules
		place int
	}{
		"of a fair type":    {rules: limitedBy(job.Limit{Scope: job.LimitType, Name: jobType, Fair: true}), place: 2},
		"of any other type": {place: 19},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for range 20 {
				parks(t, s, tt.rules, job.Terms{FairnessKey: "flood"})
			}
			require.Equal(t, 20, admitAll(t, s, tt.rules))
			claim(t, s, 2)
			exec(t, s, "update ready set run_at = run_at - interval '1 second'") // a second passes
			exec(t, s, "update turns set start = start - interval '1 second', finish = finish - interval '1 second'")
			id := parks(t, s, tt.rules, job.Terms{})
			admitAll(t, s, tt.rules)
			place := 0
			for claimed := (job.ID{}); claimed != id; place++ {
				claimed = claim(t, s, 1)[0].JobID
			}
			require.Equal(t, tt.place, place)
		})
	}
}
