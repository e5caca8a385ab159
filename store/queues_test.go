package store

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func serving(t testing.TB, s *Store, id string, aliveFor time.Duration, types ...string) {
	t.Helper()
	enlist(t, s, job.Worker{ID: id, Host: "here", PID: 7}, aliveFor)
	plugins, err := json.Marshal([]job.Pool{{Plugin: "none"}, {Plugin: "p", Version: "1", Types: types, Free: 3}})
	require.NoError(t, err)
	require.NoError(t, s.DescribeWorker(t.Context(), id, plugins))
}

func TestQueuesCountTheWaitingAndRunningJobsOfEveryType(t *testing.T) {
	s := open(t)
	require.Empty(t, queues(t, s))
	for _, state := range []job.State{job.Running, job.Retry, job.Dead, job.Succeeded, job.Canceled} {
		for range 2 {
			inState(t, s, state)
		}
	}
	exec(t, s, "update jobs set job_type = $1", jobType)
	exec(t, s, "update timers set job_type = $1", jobType)
	exec(t, s, "update dead_letters set job_type = $1", jobType)
	given(t, s, func(j *job.Submission) { j.Hold = true })
	given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	given(t, s, func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Minute) })
	given(t, s, func(j *job.Submission) { j.RunAt = time.Now().Add(-time.Hour) })
	given(t, s, func(j *job.Submission) { j.Type, j.RunAt = "ROMAN", time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC) })
	serving(t, s, "alive", time.Hour, jobType, "IDLE")
	serving(t, s, "silent", -time.Second, "ROMAN")
	serving(t, s, "stopped", time.Hour, "ROMAN")
	discharge(t, s, "stopped")
	enlist(t, s, job.Worker{ID: "new"}, time.Hour)
	exec(t, s, `insert into workers (worker_id, alive_until, host, pid, pid_started, plugins)
		values ('odd', 'infinity', '', 0, 0, '{"jobTypes": ["ROMAN"]}'), ('odder', 'infinity', '', 0, 0, '[1, {"jobTypes": "ROMAN"}]')`)

	found := queues(t, s)
	require.Len(t, found, 3)
	require.InDelta(t, 3600, found[0].OldestQueuedSeconds, 60)
	require.Greater(t, found[2].OldestQueuedSeconds, float64(1900*365*24*3600))
	found[0].OldestQueuedSeconds, found[2].OldestQueuedSeconds = 0, 0
	require.Equal(t, []v1.Queue{
		{
			JobType: jobType, Queued: 2, Scheduled: 1, Held: 1, Retrying: 2, Running: 2, Dead: 2, Served: true,
			Waiting: map[job.WaitReason]int64{job.WaitClaim: 2},
		},
		{JobType: "IDLE", Served: true, Waiting: map[job.WaitReason]int64{}},
		{JobType: "ROMAN", Queued: 1, Waiting: map[job.WaitReason]int64{job.WaitUnserved: 1}},
	}, found)
}

func TestQueuesCountWhatTheQueuedJobsWaitFor(t *testing.T) {
	s := open(t)
	serving(t, s, "alive", time.Hour, jobType, "PAUSED")
	for _, lane := range []string{
		"key:default/a", "key:default/b", "key:default/rated", "type:ECHO", "tenant:default", "paused:default", "stopped:ECHO",
		"fair:default/", "new:default/a",
	} {
		park(t, s, given(t, s), lane)
	}
	exec(t, s, "insert into slots (gate, wake_at) values ('key:default/rated', now()), ('key:default/a', null)")
	given(t, s)
	given(t, s, func(j *job.Submission) { j.Type = "PAUSED" })
	exec(t, s, "insert into pauses (scope, name, until) values ('type', 'PAUSED', null), ('type', $1, now()), ('tenant', $1, null)", jobType)
	found := queues(t, s)
	gates := maps.Clone(found[0].Waiting)
	delete(gates, job.WaitClaim)
	require.Equal(t, map[job.WaitReason]int64{
		job.WaitKey: 2, job.WaitRate: 1, job.WaitType: 1, job.WaitTenant: 1, job.WaitPaused: 2, job.WaitTurn: 2,
	}, gates)
	require.False(t, found[0].Paused)
	require.Equal(t, map[job.WaitReason]int64{job.WaitPaused: 1}, found[1].Waiting)
	require.True(t, found[1].Paused)

	exec(t, s, "insert into type_owners (job_type, plugin) values ($1, 'mail')", jobType)
	exec(t, s, "insert into pauses (scope, name) values ('plugin', 'mail')")
	found = queues(t, s)
	require.Equal(t, map[job.WaitReason]int64{job.WaitPaused: found[0].Queued}, found[0].Waiting)
	exec(t, s, "delete from pauses")
	exec(t, s, "insert into pauses (scope, name) values ('all', '')")
	all := queues(t, s)
	require.True(t, all[0].Paused && all[1].Paused)
	require.Equal(t, map[job.WaitReason]int64{job.WaitPaused: 1}, all[1].Waiting)
}

func TestTheSlotsOfLimitsAreCounted(t *testing.T) {
	s := open(t)
	m := figures(t, s, time.Minute)
	require.Zero(t, m.AdmissionInbox)
	require.Equal(t, []v1.LimitUse{}, m.Limits)
	exec(t, s, "insert into wakes (gates, freed) values ('{type:ECHO}', true), ('{type:ECHO}', false)")
	exec(t, s, `insert into limits (scope, name, concurrency, rate, period) values ('type', '*', 9, null, null), ('type', 'ECHO', 3, null, null),
		('tenant', 'acme', 0, null, null), ('key', 'a', 1, null, null), ('type', 'RATED', null, 5, '1 minute')`)
	exec(t, s, "insert into slots (gate, used) values ('type:ECHO', 2), ('key:acme/a', 1)")
	m = figures(t, s, time.Minute)
	require.EqualValues(t, 2, m.AdmissionInbox)
	require.Equal(t, []v1.LimitUse{
		{Scope: job.LimitType, Name: jobType, Used: 2, Slots: 3}, {Scope: job.LimitTenant, Name: "acme", Slots: 0},
	}, m.Limits)
}

// A million timers would take seconds.
func TestTimersAreCountedWithoutTheLedger(t *testing.T) {
	s := open(t)
	inState(t, s, job.Created)
	inState(t, s, job.Retry)
	require.NotContains(t, explainSQL(t, s, sql.Text("open_jobs")), "Index Cond: (job_id = t.job_id)")
	before := queues(t, s)
	require.Len(t, before, 2)
	exec(t, s, "delete from jobs")
	require.Equal(t, before, queues(t, s))
}

func queues(t testing.TB, s *Store) []v1.Queue {
	t.Helper()
	queues, err := s.Queues(t.Context())
	require.NoError(t, err)
	return queues
}
