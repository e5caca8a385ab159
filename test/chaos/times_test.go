//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func TestOnlyOtherFaultsDisturbAFailover(t *testing.T) {
	const answers, claim = history.Nanos(10e9), history.Nanos(12e9)
	for _, c := range []struct {
		name     string
		fault    history.Fault
		happened history.Nanos
		claims   bool
		accepts  bool
	}{
		{"a host is unreachable meanwhile", history.Fault{Kind: "unreachable-database", Injected: 5e9, Healed: 11e9}, claim, true, true},
		{"it was reachable again before", history.Fault{Kind: "unreachable-database", Injected: 5e9, Healed: 10e9}, claim, false, false},
		{"it became unreachable afterwards", history.Fault{Kind: "unreachable-database", Injected: 12e9, Healed: 20e9}, claim, false, false},
		{"everything is paused", history.Fault{Kind: "pause-all", Injected: 5e9, Healed: 20e9}, claim, true, false},
		{"a type is limited", history.Fault{Kind: "limit-type", Injected: 5e9, Healed: 20e9}, claim, true, false},
		{"a schedule ticks", history.Fault{Kind: "schedule", Injected: 5e9, Healed: 20e9}, claim, false, false},
		{"a plugin is killed", history.Fault{Kind: "kill-plugin", Injected: 11e9, Healed: 20e9, PluginOnly: true}, claim, false, false},
		{"the failover itself", history.Fault{Kind: "failover", Injected: 9e9, Healed: 20e9, Failover: true}, claim, false, false},
		{"the next failover", history.Fault{Kind: "failover", Injected: 11e9, Healed: 20e9, Failover: true}, claim, true, true},
		{"it never happens, and a fault is there at once", history.Fault{Kind: "stop-host", Injected: 5e9, Healed: 20e9}, 0, true, true},
		{"it never happens, and a fault comes too late to be the cause", history.Fault{Kind: "stop-host", Injected: 14e9, Healed: 20e9}, 0, false, false},
		{"it happens late, and a fault comes when its time is over", history.Fault{Kind: "stop-host", Injected: 14e9, Healed: 20e9}, 16e9, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := []history.Fault{c.fault, c.fault}
			want := func(yes bool) []string {
				if yes {
					return []string{c.fault.Kind}
				}
				return nil
			}
			require.Equal(t, want(c.claims), disturbers(all, answers, c.happened, firstClaimWithin, holdsClaims))
			require.Equal(t, want(c.accepts), disturbers(all, answers, c.happened, firstAcceptWithin, holdsSubmissions))
		})
	}
}
