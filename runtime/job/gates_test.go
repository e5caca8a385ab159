package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAGateNamesItsOwnerAndItsKey(t *testing.T) {
	seen := make(map[job.Gate]bool)
	for _, c := range [][2]string{{"default", "customer:42"}, {"a/b", "c"}, {"a", "b/c"}, {"a%2Fb", "c"}, {"%", "/"}, {"Ä b+:", ""}, {"", "/%"}} {
		gate := job.NewGate(job.GateKey, c[0], c[1])
		require.False(t, seen[gate], gate)
		seen[gate] = true
		require.Equal(t, job.GateKey, gate.Kind())
		require.Equal(t, c[0], gate.Owner())
		require.Equal(t, c[1], gate.Name())
	}
	gate := job.NewGate(job.GateTenant, "", "a:/%b")
	require.Equal(t, "a:/%b", gate.Name())
	require.Empty(t, gate.Owner())
}

func TestAClaimedJobIsHeldByWhatCameAfterItWasQueued(t *testing.T) {
	three := 3
	concurrency := func(scope job.LimitScope, name string) job.Limit {
		return job.Limit{Scope: scope, Name: name, Concurrency: &three}
	}
	paused := []job.Pause{{Scope: job.PauseTenant, Name: "acme"}}
	for name, tt := range map[string]struct {
		limits []job.Limit
		pauses []job.Pause
		gates  []job.Gate
		want   []job.Gate
	}{
		"nothing":                    {},
		"a limit of its type":        {limits: []job.Limit{concurrency(job.LimitType, "T")}, want: []job.Gate{"type:T"}},
		"a limit of another type":    {limits: []job.Limit{concurrency(job.LimitType, "U")}},
		"a weight bounds nothing":    {limits: []job.Limit{{Scope: job.LimitTenant, Name: "acme", Weight: 3}}},
		"a rate of every tenant":     {limits: []job.Limit{{Scope: job.LimitTenant, Name: "*", Rate: &job.Rate{Count: 1, Period: time.Second, Burst: 1}}}, want: []job.Gate{"tenant:acme"}},
		"it has passed that already": {limits: []job.Limit{concurrency(job.LimitType, "T")}, gates: []job.Gate{"type:T"}},
		"its tenant is paused":       {pauses: paused, gates: []job.Gate{"key:acme/k"}, want: []job.Gate{"paused:acme", "key:acme/k"}},
		"paused again":               {pauses: paused, gates: []job.Gate{"paused:acme", "type:T"}, want: []job.Gate{"paused:acme", "type:T"}},
		"in order": {
			limits: []job.Limit{concurrency(job.LimitTenant, "acme")}, gates: []job.Gate{"fair:acme/", "new:acme/k", "key:acme/k", "type:T"},
			want: []job.Gate{"fair:acme/", "new:acme/k", "key:acme/k", "tenant:acme", "type:T"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			next, held := job.NewRules(tt.limits, tt.pauses).Held("T", "acme", tt.gates)
			require.Equal(t, tt.want, next)
			require.Equal(t, tt.want != nil, held)
		})
	}
	_, held := (*job.Rules)(nil).Held("T", "acme", nil)
	require.False(t, held)
}

func TestAConcurrencyKeyWithoutAColonIsItsOwnClass(t *testing.T) {
	for key, class := range map[string]string{"customer:42": "customer", "a:b:c": "a", "tenant-7": "tenant-7", ":x": "", "": ""} {
		require.Equal(t, class, job.KeyClass(key), key)
	}
	rules := job.NewRules([]job.Limit{{Scope: job.LimitKey, Name: "solo", Concurrency: new(1)}}, nil)
	for name, limited := range map[string]bool{"solo": true, "solo:1": true, "solo-2": false, "so": false} {
		_, found := rules.Limit(job.NewGate(job.GateKey, "acme", name))
		require.Equal(t, limited, found, name)
	}
}
