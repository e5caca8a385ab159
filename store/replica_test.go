package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// stale are the verbs whose answer may come from a replica. A hot standby runs fewer
// statements than a primary does.
func stale(s *Store) map[string]func(context.Context) error {
	ofTenant, ofType := job.Filter{Limit: 1, Tenant: "t"}, job.Filter{Limit: 1, Type: "A"}
	return map[string]func(context.Context) error{
		"list":          func(ctx context.Context) error { _, err := s.List(ctx, job.Filter{Limit: 1}); return err },
		"list a tenant": func(ctx context.Context) error { _, err := s.List(ctx, ofTenant); return err },
		"find":          func(ctx context.Context) error { _, err := s.Find(ctx, ofType); return err },
		"count":         func(ctx context.Context) error { _, err := s.Count(ctx, job.Filter{}); return err },
		"count the dead": func(ctx context.Context) error {
			_, err := s.Count(ctx, job.Filter{States: []job.State{job.Dead}})
			return err
		},
		"count those that wait": func(ctx context.Context) error {
			_, err := s.Count(ctx, job.Filter{States: []job.State{job.Queued, job.Retry}})
			return err
		},
		"dead letters": func(ctx context.Context) error {
			_, err := s.DeadLetters(ctx, job.DeadLetterFilter{Limit: 1})
			return err
		},
		"dead letter groups": func(ctx context.Context) error {
			_, _, err := s.DeadLetterGroups(ctx, job.DeadLetterFilter{Limit: 1})
			return err
		},
		"dead letter groups of a tenant": func(ctx context.Context) error {
			_, _, err := s.DeadLetterGroups(ctx, job.DeadLetterFilter{Limit: 1, Tenant: "t"})
			return err
		},
		"workflows": func(ctx context.Context) error { _, err := s.Workflows(ctx, job.WorkflowFilter{Limit: 1}); return err },
		"schedules": func(ctx context.Context) error { _, err := s.Schedules(ctx, job.ScheduleFilter{Limit: 1}); return err },
		"operations": func(ctx context.Context) error {
			_, err := s.Operations(ctx, job.OperationFilter{Limit: 1})
			return err
		},
		"erasures": func(ctx context.Context) error { _, err := s.Erasures(ctx, job.ErasureFilter{Limit: 1}); return err },
		"acts":     func(ctx context.Context) error { _, err := s.Acts(ctx, job.ActFilter{Limit: 1}); return err },
		"plugin events": func(ctx context.Context) error {
			_, err := s.PluginEvents(ctx, job.PluginEventFilter{Limit: 1})
			return err
		},
		"plugin events of one": func(ctx context.Context) error {
			_, err := s.PluginEvents(ctx, job.PluginEventFilter{Limit: 1, Plugin: "p"})
			return err
		},
		"queues":               func(ctx context.Context) error { _, err := s.Queues(ctx); return err },
		"metrics":              func(ctx context.Context) error { _, err := s.Metrics(ctx, time.Hour); return err },
		"worker totals":        func(ctx context.Context) error { _, err := s.WorkerTotals(ctx, time.Hour); return err },
		"worker totals of all": func(ctx context.Context) error { _, err := s.WorkerTotals(ctx, 0); return err },
		"series": func(ctx context.Context) error {
			_, err := s.Series(ctx, v1.Hour, "A")
			return except(err, job.ErrNoType)
		},
		"plan retention": func(ctx context.Context) error {
			_, err := s.PlanRetention(ctx, job.RetentionPolicies{})
			return err
		},
	}
}

// except returns the error unless it is the one that says that there is no such thing.
func except(err, none error) error {
	if errors.Is(err, none) {
		return nil
	}
	return err
}

// current are verbs whose answer never comes from a replica.
func current(t *testing.T, s *Store) map[string]func(context.Context) error {
	t.Helper()
	id := given(t, s)
	return map[string]func(context.Context) error{
		"get":    func(ctx context.Context) error { _, err := s.Get(ctx, id); return err },
		"detail": func(ctx context.Context) error { _, err := s.Detail(ctx, id); return err },
		"logs":   func(ctx context.Context) error { _, err := s.Logs(ctx, id, job.LogFilter{Limit: 1}); return err },
		"lookup": func(ctx context.Context) error { _, err := s.Lookup(ctx, job.Lookup{ID: id, Limit: 1}); return err },
		"tree": func(ctx context.Context) error {
			_, err := s.Tree(ctx, id, job.TreeFilter{Depth: 1, Limit: 1})
			return err
		},
		"workers": func(ctx context.Context) error {
			_, err := s.Workers(ctx)
			return err
		},
		"slots used": func(ctx context.Context) error { _, err := s.SlotsUsed(ctx, nil); return err },
		"preview": func(ctx context.Context) error {
			_, err := s.PreviewOperation(ctx, job.Filter{States: []job.State{job.Dead}, Within: time.Second})
			return err
		},
		"edit all": func(ctx context.Context) error {
			_, err := s.EditAll(ctx, job.Filter{States: []job.State{job.Queued}, Limit: 1}, job.Edit{})
			return err
		},
		"one operation": func(ctx context.Context) error {
			_, err := s.Operations(ctx, job.OperationFilter{ID: id, Limit: 1})
			return err
		},
		"one erasure": func(ctx context.Context) error {
			_, err := s.Erasures(ctx, job.ErasureFilter{ID: id, Limit: 1})
			return err
		},
		"one schedule": func(ctx context.Context) error {
			_, err := s.Schedule(ctx, "t", "n")
			return except(err, job.ErrNoSchedule)
		},
		"one workflow": func(ctx context.Context) error {
			_, err := s.WorkflowDetail(ctx, id)
			return except(err, job.ErrNoWorkflow)
		},
	}
}

func TestListsAndFiguresComeFromTheReplicaAndNothingElseDoes(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	s, err := Open(t.Context(), Config{URL: pair.Primary, Replica: postgres.ReplicaConfig{URL: pair.Standby, MaxLag: time.Hour}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	fill(t, s, job.Queued, 10, "A")
	fill(t, s, job.Dead, 10, "B")
	pair.AwaitReplay(t)
	require.NoError(t, s.FollowReplica(t.Context()))
	require.Eventually(t, func() bool { return s.Replica().Used }, patience, time.Millisecond)
	for name, verb := range stale(s) {
		asked := &job.Staleness{}
		require.NoError(t, verb(job.WithStaleness(t.Context(), asked)), name)
		_, old := asked.Age()
		require.True(t, old, "%s: it did not come from the replica", name)
	}
	answered := s.Replica().Reads
	for result, reads := range answered {
		require.Equal(t, result == postgres.ByReplica, reads > 0, "%s: %d", result, reads)
	}
	for name, verb := range current(t, s) {
		asked := &job.Staleness{}
		require.NoError(t, verb(job.WithStaleness(t.Context(), asked)), name)
		_, old := asked.Age()
		require.False(t, old, "%s: it came from the replica", name)
	}
	require.Equal(t, answered, s.Replica().Reads)
}

func TestEverythingComesFromThePrimaryUntilTheReplicaIsFollowed(t *testing.T) {
	url := pgtest.URL(t)
	s, err := Open(t.Context(), Config{URL: url, Replica: postgres.ReplicaConfig{URL: url, MaxLag: time.Hour}})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	for name, verb := range stale(s) {
		asked := &job.Staleness{}
		require.NoError(t, verb(job.WithStaleness(t.Context(), asked)), name)
		_, old := asked.Age()
		require.False(t, old, name)
	}
	require.NoError(t, s.FollowReplica(t.Context()), "a primary, which it may have become, is no mistake")
	require.False(t, s.Replica().Used)
	require.Contains(t, s.Replica().Reason, "takes writes")
}
