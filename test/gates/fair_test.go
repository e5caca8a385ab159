package gates

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

func TestTenantsShareByWeight(t *testing.T) {
	t.Parallel()
	jobs, counted := ofLength(1200, 8000), ofLength(800, 8000)
	s := newScene(t, 2, func(s *store.Store) {
		setFair(t, s)
		_, err := s.SetLimit(t.Context(), job.Limit{Scope: job.LimitTenant, Name: "heavy", Weight: 3})
		require.NoError(t, err)
		pause(t, s, job.PauseType, "VISIT")
	}, "plugins.0.concurrency=5")
	for _, tenant := range []string{"light", "heavy"} {
		require.NoError(t, <-s.submitAll(t, visits(jobs, rig.Submission{Tenant: tenant, Payload: visit{Millis: 5}})))
	}
	require.NoError(t, s.store.EndPause(t.Context(), job.PauseType, "VISIT"))
	s.awaitAtLeast(t, counted, `select count(*) from jobs where finished_at is not null`)

	share := make(map[string]int)
	for _, l := range begun(s.lines(t))[:counted] {
		share[l.tenant]++
	}
	t.Logf("of the first %d starts: %v", counted, share)
	require.InEpsilon(t, 3, float64(share["heavy"])/float64(share["light"]), 0.05)
}

func TestATenantWithAFloodDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	flood, lasts := ofLength(3000, 1_000_000), ofLength(3*time.Second, time.Minute)
	s := newScene(t, 2, func(s *store.Store) {
		setFair(t, s)
		pause(t, s, job.PauseType, "VISIT")
	}, "plugins.0.concurrency=5")
	require.NoError(t, <-s.submitAll(t, visits(flood, rig.Submission{Tenant: "flood", Payload: visit{Millis: ofLength(60, 20)}})))
	require.NoError(t, s.store.EndPause(t.Context(), job.PauseType, "VISIT"))
	s.awaitAtLeast(t, 1, `select count(*) from jobs where finished_at is not null`)

	submitted := s.submitSteadily(t, lasts, rig.Submission{JobType: "VISIT", Tenant: "other", Payload: visit{Millis: 1}})
	require.NotZero(t, s.count(t, `select count(*) from jobs where tenant = 'flood' and finished_at is null limit 1`), "the flood is over")
	s.awaitNone(t, `select count(*) from jobs where tenant = 'other' and finished_at is null`)
	var waits []time.Duration
	for _, l := range begun(s.lines(t)) {
		if at, found := submitted[l.id]; found && l.fence == 1 {
			waits = append(waits, l.at.Sub(at))
		}
	}
	require.Len(t, waits, len(submitted))
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	t.Logf("waits of %d jobs beside a flood of %d: p50 %s, p99 %s, longest %s", len(waits), flood, waits[len(waits)/2], p99, waits[len(waits)-1])
	if full {
		require.Less(t, p99, time.Second)
	}
}

// submitSteadily submits ten jobs a second, and returns when each submission began, by id.
func (s *scene) submitSteadily(t *testing.T, lasts time.Duration, one rig.Submission) map[string]time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	pace := time.NewTicker(time.Second / 10)
	defer pace.Stop()
	began := make(map[string]time.Time)
	for {
		at := time.Now()
		id, err := s.orchestrators[len(began)%len(s.orchestrators)].Submit(t.Context(), one)
		require.NoError(t, err)
		began[id] = at
		select {
		case <-pace.C:
		case <-ctx.Done():
			return began
		}
	}
}

// setFair lets tenants take turns.
func setFair(t *testing.T, s *store.Store) {
	t.Helper()
	_, err := s.SetLimit(t.Context(), job.Limit{Scope: job.LimitType, Name: "VISIT", Fair: true})
	require.NoError(t, err)
}

func pause(t *testing.T, s *store.Store, scope job.PauseScope, name string) {
	t.Helper()
	_, err := s.SetPause(t.Context(), job.Pause{Scope: scope, Name: name, Reason: "test", By: "test"}, 0)
	require.NoError(t, err)
}
