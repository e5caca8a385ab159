package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhyAJobWaitsIsTold(t *testing.T) {
	at := time.Date(2026, 2, 20, 9, 30, 0, 0, time.UTC)
	key, ofType, tenant := NewGate(GateKey, "acme", "customer:7"), NewGate(GateType, "", "MAIL"), NewGate(GateTenant, "", "acme")
	most := func(n int) *int { return &n }
	tokens := func(n float64) *float64 { return &n }
	limits := func(all ...Limit) *Rules { return NewRules(all, nil) }
	pauses := func(all ...Pause) *Rules { return NewRules(nil, all) }
	perMinute := &Rate{Count: 100, Period: time.Minute, Burst: 1}
	type told struct {
		reason  WaitReason
		message string
	}
	for name, c := range map[string]struct {
		place Place
		waits []told
	}{
		"held":      {Place{State: Created}, []told{{WaitHeld, "held until it is released"}}},
		"scheduled": {Place{State: Created, RunAt: at}, []told{{WaitScheduled, "scheduled for 2026-02-20T09:30:00Z"}}},
		"retry":     {Place{State: Retry, RunAt: at}, []told{{WaitRetry, "the next attempt is due at 2026-02-20T09:30:00Z"}}},
		"running":   {Place{State: Running}, nil},
		"succeeded": {Place{State: Succeeded}, nil},
		"next":      {Place{Served: true}, []told{{WaitClaim, "queued, next to be claimed"}}},
		"second":    {Place{Served: true, Ahead: 1}, []told{{WaitClaim, "queued, behind 1 job"}}},
		"in a crowd": {
			Place{Served: true, Ahead: MaxAhead}, []told{{WaitClaim, "queued, behind 1000 jobs or more"}},
		},
		"without a handler": {
			Place{}, []told{{WaitUnserved, "no live worker serves the type MAIL"}, {WaitClaim, "queued, next to be claimed"}},
		},
		"of a paused type": {
			Place{Served: true, Rules: pauses(Pause{Scope: PauseType, Name: "MAIL", By: "operator", Reason: "migration"})},
			[]told{{WaitPaused, "type paused by operator: migration"}},
		},
		"of a paused type, for some time": {
			Place{Served: true, Rules: pauses(Pause{Scope: PauseType, Name: "MAIL", By: "operator", Reason: "migration", Until: at})},
			[]told{{WaitPaused, "type paused by operator until 2026-02-20T09:30:00Z: migration"}},
		},
		"paused in every way": {
			Place{Served: true, Lane: NewGate(GatePaused, "", "acme"), Rules: pauses(
				Pause{Scope: PauseTenant, Name: "acme"}, Pause{Scope: PausePlugin, Name: "mail", By: "ann"},
				Pause{Scope: PauseAll, Reason: "fire"}, Pause{Scope: PauseType, Name: "MAIL"})},
			[]told{
				{WaitPaused, "everything paused: fire"},
				{WaitPaused, "plugin mail paused by ann"},
				{WaitPaused, "type paused"},
				{WaitPaused, "tenant paused"},
			},
		},
		"of a paused type, parked": {
			Place{Served: true, Lane: NewGate(GateStopped, "", "MAIL"), Rules: pauses(Pause{Scope: PauseType, Name: "MAIL", By: "ann", Reason: "fire"})},
			[]told{{WaitPaused, "type paused by ann: fire"}},
		},
		"of a paused type without a handler": {
			Place{Rules: pauses(Pause{Scope: PauseType, Name: "MAIL"})},
			[]told{{WaitPaused, "type paused"}, {WaitUnserved, "no live worker serves the type MAIL"}},
		},
		"of a paused type, behind others": {
			Place{Served: true, Ahead: 2, Rules: pauses(Pause{Scope: PauseType, Name: "MAIL"})},
			[]told{{WaitPaused, "type paused"}, {WaitClaim, "queued, behind 2 jobs"}},
		},
		"of a paused type, with a full key": {
			Place{Served: true, Lane: key, Used: 1, Capacity: 1, Rules: pauses(Pause{Scope: PauseType, Name: "MAIL"})},
			[]told{{WaitPaused, "type paused"}, {WaitKey, "waits for a slot of key customer:7 (1 of 1 running)"}},
		},
		"what others pause": {
			Place{Served: true, Rules: pauses(Pause{Scope: PauseTenant, Name: "other"}, Pause{Scope: PauseType, Name: "OTHER"})},
			[]told{{WaitClaim, "queued, next to be claimed"}},
		},
		"a full key": {
			Place{Served: true, Lane: key, Used: 3, Rules: limits(Limit{Scope: LimitKey, Name: "customer", Concurrency: most(3)})},
			[]told{{WaitKey, "waits for a slot of key customer:7 (3 of 3 running)"}},
		},
		"a key that the submission limits": {
			Place{Served: true, Lane: key, Used: 1, Capacity: 1, Rules: limits(Limit{Scope: LimitKey, Name: "customer", Concurrency: most(3)})},
			[]told{{WaitKey, "waits for a slot of key customer:7 (1 of 1 running)"}},
		},
		"a key that all classes share": {
			Place{Served: true, Lane: key, Used: 2, Ahead: 41, Rules: limits(Limit{Scope: LimitKey, Name: EveryName, Concurrency: most(2)})},
			[]told{{WaitKey, "waits for a slot of key customer:7 (2 of 2 running), behind 41 jobs"}},
		},
		"a full type": {
			Place{Served: true, Lane: ofType, Used: 10, Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Concurrency: most(10)})},
			[]told{{WaitType, "waits for a slot of job type MAIL (10 of 10 running)"}},
		},
		"a full tenant": {
			Place{Served: true, Lane: tenant, Used: 7, Rules: limits(Limit{Scope: LimitTenant, Name: "acme", Concurrency: most(5)})},
			[]told{{WaitTenant, "waits for a slot of tenant acme (7 of 5 running)"}},
		},
		"a type that may not run": {
			Place{Served: true, Lane: ofType, Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Concurrency: most(0)})},
			[]told{{WaitType, "the limit of job type MAIL is 0"}},
		},
		"a limit that was removed": {
			Place{Served: true, Lane: ofType, Used: 7}, []told{{WaitTurn, "about to be admitted"}},
		},
		"room, but not for this one yet": {
			Place{Served: true, Lane: key, Ahead: 2, Rules: limits(Limit{Scope: LimitKey, Name: "customer", Concurrency: most(3)})},
			[]told{{WaitTurn, "waits for its turn, behind 2 jobs"}},
		},
		"a rate": {
			Place{
				Served: true, At: at, Lane: ofType, Ahead: 17, Starting: 2, Tokens: tokens(-1), TokensAt: at.Add(-600 * time.Millisecond),
				Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Rate: perMinute}),
			},
			[]told{{WaitRate, "rate limit of job type MAIL (100/1m), about 12 s, behind 17 jobs"}},
		},
		"a rate in a moment": {
			Place{
				Served: true, At: at, Lane: ofType, Tokens: tokens(0), TokensAt: at, Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Rate: perMinute}),
			},
			[]told{{WaitRate, "rate limit of job type MAIL (100/1m), less than 1 s"}},
		},
		"a rate for long": {
			Place{
				Served: true, At: at, Lane: ofType, Ahead: MaxAhead,
				Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Rate: &Rate{Count: 1, Period: time.Hour, Burst: 1}}),
			},
			[]told{{WaitRate, "rate limit of job type MAIL (1/1h), at least 1000h, behind 1000 jobs or more"}},
		},
		"a rate that has starts left": {
			Place{
				Served: true, At: at, Lane: ofType, Tokens: tokens(0), TokensAt: at.Add(-time.Second),
				Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Rate: perMinute}),
			},
			[]told{{WaitTurn, "about to be admitted"}},
		},
		"a slot before a rate": {
			Place{
				Served: true, At: at, Lane: ofType, Used: 1, Tokens: tokens(0), TokensAt: at,
				Rules: limits(Limit{Scope: LimitType, Name: "MAIL", Rate: perMinute, Concurrency: most(1)}),
			},
			[]told{{WaitType, "waits for a slot of job type MAIL (1 of 1 running)"}},
		},
		"a newcomer": {
			Place{
				Served: true, Lane: NewGate(GateNew, "acme", "customer:7"), Used: 3,
				Rules: limits(Limit{Scope: LimitKey, Name: "customer", Concurrency: most(3)}),
			},
			[]told{{WaitKey, "waits for a slot of key customer:7 (3 of 3 running)"}},
		},
		"a turn": {
			Place{Served: true, Lane: NewGate(GateFair, "acme", ""), Ahead: 5}, []told{{WaitTurn, "waits for its turn, behind 5 jobs"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			place := c.place
			if place.State == "" {
				place.State = Queued
			}
			place.Type, place.Tenant, place.Plugin = "MAIL", "acme", "mail"
			var waits []told
			for _, wait := range place.Waits() {
				require.Contains(t, WaitReasons(), wait.Reason)
				waits = append(waits, told{wait.Reason, wait.Message})
			}
			require.Equal(t, c.waits, waits)
		})
	}
}

func TestTheTimeThatARateTakesIsEstimated(t *testing.T) {
	at := time.Date(2026, 2, 20, 9, 30, 0, 0, time.UTC)
	left := -1.0
	place := Place{
		State: Queued, At: at, Served: true, Lane: NewGate(GateType, "", "MAIL"), Ahead: 4, Starting: 3, Tokens: &left, TokensAt: at.Add(-2 * time.Second),
		Rules: NewRules([]Limit{{Scope: LimitType, Name: "MAIL", Rate: &Rate{Count: 10, Period: 10 * time.Second, Burst: 5}}}, nil),
	}
	wait := place.Waits()[0]
	require.Equal(t, at.Add(7*time.Second), wait.Until, "8 starts, and 1 is left")
	left = 100
	require.Equal(t, at.Add(3*time.Second), place.Waits()[0].Until, "no more are left than the burst")
}

func TestAReasonIsForQueuedJobsOrForOthers(t *testing.T) {
	require.NotContains(t, QueuedReasons(), WaitRetry)
	require.Contains(t, QueuedReasons(), WaitPaused)
	require.Contains(t, QueuedReasons(), WaitClaim)
}
