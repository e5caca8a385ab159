package meter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func somePlugins() []v1.Plugin {
	return []v1.Plugin{
		{Name: "good", State: job.PluginUp, PIDs: []int{1, 2}, Processes: 2, Running: 3, Free: 17, Restarts: 5, Crashes: 4},
		{Name: "bad", State: job.PluginBroken, Processes: 1, Restarts: 9},
	}
}

func somePools() []postgres.PoolStats {
	return []postgres.PoolStats{{
		Name: "worker", Acquired: 3, Idle: 4, Opening: 1, Max: 20, Acquires: 1000, Waits: 7, Waited: 1500 * time.Millisecond,
	}}
}

func someReplica() v1.Replica {
	return v1.Replica{Configured: true, Used: true, LagSeconds: new(0.5), MaxLagSeconds: 10, Reads: map[string]int64{
		"replica": 12, "down": 0, "behind": 3, "foreign": 0, "conflict": 1, "failed": 0, "fresh": 0,
	}}
}

func someMetrics() v1.Metrics {
	return v1.Metrics{
		StatusCounts: map[job.State]int64{job.Queued: 11, job.Succeeded: 1 << 40},
		Queues: []v1.Queue{
			{
				JobType: "MAIL", Queued: 9, OldestQueuedSeconds: 90, Running: 2, Dead: 1, Served: true, Paused: true,
				Waiting: map[job.WaitReason]int64{job.WaitPaused: 9},
			},
			{
				JobType: "made up", Queued: 1, OldestQueuedSeconds: 1, Scheduled: 3, Served: true, Paused: true,
				Waiting: map[job.WaitReason]int64{job.WaitPaused: 1},
			},
			{
				JobType: "made up too", Queued: 3, OldestQueuedSeconds: 60, Held: 4, Retrying: 5,
				Waiting: map[job.WaitReason]int64{job.WaitRate: 1, job.WaitPaused: 2},
			},
		},
		Limits:                []v1.LimitUse{{Scope: job.LimitTenant, Name: "acme", Used: 3, Slots: 5}},
		AdmissionInbox:        17,
		OldestSnapshotSeconds: 3600, SnapshotAgeTransactions: 123456,
	}
}

func onlyMail(jobType string) string {
	if jobType == "MAIL" {
		return jobType
	}
	return "other"
}

type asking func(context.Context, time.Duration) (v1.Metrics, error)

func watching(t testing.TB, ask asking) *Meters {
	t.Helper()
	m := newMeters(t)
	require.NoError(t, m.Watch(Sources{Plugins: somePlugins, Pools: somePools, Replica: someReplica, Ledger: ask, TypeLabel: onlyMail}))
	return m
}

func TestWhatTheSourcesTellIsServed(t *testing.T) {
	m := watching(t, func(context.Context, time.Duration) (v1.Metrics, error) { return someMetrics(), nil })
	m.Request("/jobs/{id}", "GET", 204, time.Second)
	m.Request("/jobs/{id}", "GET", 200, time.Second)
	m.Request("", "BREW", 0, time.Second)
	found := families(t, m)
	for _, want := range []struct {
		value  float64
		name   string
		labels []string
	}{
		{1, "holdfast_plugin_up", []string{"plugin=good"}},
		{0, "holdfast_plugin_up", []string{"plugin=bad"}},
		{0, "holdfast_plugin_broken", []string{"plugin=good"}},
		{1, "holdfast_plugin_broken", []string{"plugin=bad"}},
		{2, "holdfast_plugin_processes", []string{"plugin=good"}},
		{3, "holdfast_plugin_jobs_running", []string{"plugin=good"}},
		{17, "holdfast_plugin_slots_free", []string{"plugin=good"}},
		{5, "holdfast_plugin_restarts_total", []string{"plugin=good"}},
		{4, "holdfast_plugin_crashes_total", []string{"plugin=good"}},
		{3, "holdfast_pool_connections", []string{"pool=worker", "state=acquired"}},
		{4, "holdfast_pool_connections", []string{"pool=worker", "state=idle"}},
		{1, "holdfast_pool_connections", []string{"pool=worker", "state=opening"}},
		{20, "holdfast_pool_connections_max", []string{"pool=worker"}},
		{1000, "holdfast_pool_acquires_total", []string{"pool=worker"}},
		{7, "holdfast_pool_waits_total", []string{"pool=worker"}},
		{1.5, "holdfast_pool_wait_seconds_total", []string{"pool=worker"}},
		{1, "holdfast_replica_used", nil},
		{0.5, "holdfast_replica_lag_seconds", nil},
		{12, "holdfast_replica_reads_total", []string{"result=replica"}},
		{3, "holdfast_replica_reads_total", []string{"result=behind"}},
		{1, "holdfast_database_up", nil},
		{11, "holdfast_jobs", []string{"state=queued"}},
		{0, "holdfast_jobs", []string{"state=dead"}},
		{1 << 40, "holdfast_jobs", []string{"state=succeeded"}},
		{9, "holdfast_queue_jobs", []string{"job_type=MAIL", "state=queued"}},
		{2, "holdfast_queue_jobs", []string{"job_type=MAIL", "state=running"}},
		{1, "holdfast_queue_jobs", []string{"job_type=MAIL", "state=dead"}},
		{90, "holdfast_queue_oldest_age_seconds", []string{"job_type=MAIL"}},
		{1, "holdfast_queue_served", []string{"job_type=MAIL"}},
		{1, "holdfast_queue_paused", []string{"job_type=MAIL"}},
		{0, "holdfast_queue_paused", []string{"job_type=other"}},
		{9, "holdfast_queue_waiting", []string{"job_type=MAIL", "reason=paused"}},
		{0, "holdfast_queue_waiting", []string{"job_type=MAIL", "reason=claim"}},
		{3, "holdfast_queue_waiting", []string{"job_type=other", "reason=paused"}},
		{1, "holdfast_queue_waiting", []string{"job_type=other", "reason=rate"}},
		{3, "holdfast_limit_used", []string{"scope=tenant", "name=acme"}},
		{5, "holdfast_limit_slots", []string{"scope=tenant", "name=acme"}},
		{17, "holdfast_admission_inbox", nil},
		{4, "holdfast_queue_jobs", []string{"job_type=other", "state=queued"}},
		{3, "holdfast_queue_jobs", []string{"job_type=other", "state=scheduled"}},
		{4, "holdfast_queue_jobs", []string{"job_type=other", "state=held"}},
		{5, "holdfast_queue_jobs", []string{"job_type=other", "state=retrying"}},
		{60, "holdfast_queue_oldest_age_seconds", []string{"job_type=other"}},
		{0, "holdfast_queue_served", []string{"job_type=other"}},
		{3600, "holdfast_snapshot_age_seconds", nil},
		{123456, "holdfast_snapshot_age_transactions", nil},
		{2, "holdfast_http_request_duration_seconds", []string{"route=/jobs/{id}", "method=GET", "status=2xx"}},
		{1, "holdfast_http_request_duration_seconds", []string{"route=none", "method=other", "status=none"}},
		{1, "target_info", []string{"service_name=holdfast", "service_instance_id=worker-1", "service_version=v9"}},
	} {
		require.InDelta(t, want.value, value(t, found, want.name, want.labels...), 0, "%s%v", want.name, want.labels)
	}
	require.Contains(t, found, "go_goroutines")
	require.Contains(t, found, "process_open_fds")
}

func TestADatabaseThatDoesNotAnswerHidesNothingElse(t *testing.T) {
	for name, ask := range map[string]asking{
		"fails": func(context.Context, time.Duration) (v1.Metrics, error) {
			return someMetrics(), errors.New("no route")
		},
		"hangs": func(ctx context.Context, _ time.Duration) (v1.Metrics, error) {
			<-ctx.Done()
			return v1.Metrics{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // no goroutine may be left
				m := watching(t, ask)
				began := time.Now()
				found := families(t, m)
				require.LessOrEqual(t, time.Since(began), answerWithin)
				require.Zero(t, value(t, found, "holdfast_database_up"))
				require.NotContains(t, found, "holdfast_jobs")
				require.NotContains(t, found, "holdfast_snapshot_age_seconds")
				require.InDelta(t, 1, value(t, found, "holdfast_plugin_up", "plugin=good"), 0)
				require.InDelta(t, 20, value(t, found, "holdfast_pool_connections_max", "pool=worker"), 0)
				require.Contains(t, found, "go_goroutines")
			})
		})
	}
}

func TestADatabaseThatIsSlowIsNotDown(t *testing.T) {
	for name, c := range map[string]struct {
		known   v1.Metrics
		present []string
		absent  []string
	}{
		"to count by type": {
			v1.Metrics{At: time.Now(), StatusCounts: someMetrics().StatusCounts, SnapshotAgeTransactions: 5},
			[]string{"holdfast_jobs", "holdfast_snapshot_age_seconds"},
			[]string{"holdfast_queue_jobs"},
		},
		"to count at all": {
			v1.Metrics{At: time.Now(), SnapshotAgeTransactions: 5},
			[]string{"holdfast_snapshot_age_seconds"},
			[]string{"holdfast_jobs", "holdfast_queue_jobs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				found := families(t, watching(t, func(ctx context.Context, _ time.Duration) (v1.Metrics, error) {
					<-ctx.Done()
					return c.known, fmt.Errorf("metrics: %w", ctx.Err())
				}))
				require.InDelta(t, 1, value(t, found, "holdfast_database_up"), 0)
				require.InDelta(t, 5, value(t, found, "holdfast_snapshot_age_transactions"), 0)
				for _, metric := range c.present {
					require.Contains(t, found, metric)
				}
				for _, metric := range c.absent {
					require.NotContains(t, found, metric)
				}
			})
		})
	}
}

func TestTheDatabaseIsAskedByOneAtATime(t *testing.T) {
	asked, goOn := make(chan struct{}, 100), make(chan struct{})
	var atOnce atomic.Int32
	l := &ledger{ask: func(context.Context, time.Duration) (v1.Metrics, error) {
		if atOnce.Add(1) > 1 {
			return v1.Metrics{}, errors.New("another is being answered")
		}
		defer atOnce.Add(-1)
		asked <- struct{}{}
		<-goOn
		return someMetrics(), nil
	}}
	var readers sync.WaitGroup
	var answered atomic.Int32
	for range 20 {
		readers.Go(func() {
			if _, up := l.read(); up {
				answered.Add(1)
			}
		})
	}
	<-asked
	close(goOn)
	readers.Wait()
	require.EqualValues(t, 20, answered.Load())
}

func TestTheAnswerOfTheDatabaseIsKeptForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		m := watching(t, func(context.Context, time.Duration) (v1.Metrics, error) {
			asked++
			time.Sleep(answerWithin / 2)
			return someMetrics(), nil
		})
		text(t, m)
		time.Sleep(keepFor - time.Millisecond)
		text(t, m)
		require.Equal(t, 1, asked)
		time.Sleep(time.Millisecond)
		text(t, m)
		require.Equal(t, 2, asked)
	})
}
