package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func enlist(t testing.TB, s *Store, w job.Worker, aliveFor time.Duration) {
	t.Helper()
	if w.Roles == nil {
		w.Roles = job.AllRoles()
	}
	require.NoError(t, s.RegisterWorker(t.Context(), w, aliveFor))
}

func discharge(t testing.TB, s *Store, workers ...string) int {
	t.Helper()
	leases, err := s.ExpireWorkers(t.Context(), workers)
	require.NoError(t, err)
	return leases
}

func TestWorkersOnAHostMayStillHoldLeases(t *testing.T) {
	s := open(t)
	on := func(id, host string, pid int) job.Worker {
		return job.Worker{ID: id, Host: host, PID: pid, PIDStarted: 1 << 40, Roles: job.Roles{job.RoleWorker}}
	}
	enlist(t, s, on("me", "here", 1), time.Hour)
	enlist(t, s, on("alive", "here", 2), time.Hour)
	enlist(t, s, on("elsewhere", "there", 3), time.Hour)
	enlist(t, s, on("silent", "here", 4), -time.Second)
	enlist(t, s, on("silent with a lease", "here", 5), -time.Second)
	enlist(t, s, on("signed off", "here", 6), time.Hour)
	given(t, s)
	_, err := s.Claim(t.Context(), "silent with a lease", []string{jobType}, 1, aMinute)
	require.NoError(t, err)
	require.Zero(t, discharge(t, s, "signed off"))

	found, err := s.Surroundings(t.Context(), "here", "me")
	require.NoError(t, err)
	require.ElementsMatch(t, []job.Worker{on("alive", "here", 2), on("silent with a lease", "here", 5)}, found.Neighbours)
	require.False(t, found.LeaseExpired)
	require.Equal(t, 1, discharge(t, s, "silent with a lease"))
	found, err = s.Surroundings(t.Context(), "here", "me")
	require.NoError(t, err)
	require.Equal(t, []job.Worker{on("alive", "here", 2)}, found.Neighbours)
	require.True(t, found.LeaseExpired)
}

func TestTheVersionOfJobTypesChangesWithEachOfThem(t *testing.T) {
	s := open(t)
	version := func() int64 {
		found, err := s.Surroundings(t.Context(), "here", "me")
		require.NoError(t, err)
		return found.TypesVersion
	}
	specs := func(timeout time.Duration, types ...string) (all []job.TypeSpec) {
		for _, jobType := range types {
			all = append(all, job.TypeSpec{Type: jobType, Plugin: "p", Version: "1", MaxAttempts: 1, Timeout: timeout})
		}
		return all
	}
	none := version()
	require.NoError(t, s.DeclareTypes(t.Context(), specs(time.Second, "A", "B")))
	two := version()
	require.NotEqual(t, none, two)
	require.NoError(t, s.DeclareTypes(t.Context(), specs(time.Second, "A", "B")))
	require.Equal(t, two, version(), "nothing has changed")
	require.NoError(t, s.DeclareTypes(t.Context(), specs(time.Minute, "A")))
	changed := version()
	require.NotEqual(t, two, changed)
	require.NoError(t, s.DeclareTypes(t.Context(), specs(time.Second, "C")))
	require.NotEqual(t, changed, version())
}

func TestWorkersAreAliveSilentOrStopped(t *testing.T) {
	s := open(t)
	nobody, err := s.Workers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []v1.Worker{}, nobody)
	serving(t, s, worker, time.Hour, jobType)
	enlist(t, s, job.Worker{ID: "silent", Host: "there", PID: 8}, -time.Second)
	enlist(t, s, job.Worker{ID: "stopped"}, time.Hour)
	discharge(t, s, "stopped")
	exec(t, s, "update workers set started_at = '2020-01-01', heartbeat_at = started_at where worker_id = $1", worker)
	held := []job.Claimed{running(t, s), running(t, s)}
	require.Len(t, renew(t, s, aMinute, held[0].Lease), 1)

	found, err := s.Workers(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 3)
	conditions := make(map[string]job.Condition)
	for _, w := range found {
		conditions[w.WorkerID] = w.Condition
		require.Equal(t, time.UTC, w.LastHeartbeat.Location())
		require.Equal(t, w.Condition == job.WorkerStopped, w.StoppedAt != nil)
	}
	require.Equal(t, map[string]job.Condition{
		worker: job.WorkerAlive, "silent": job.WorkerSilent, "stopped": job.WorkerStopped,
	}, conditions)
	me := found[2] // the oldest
	require.JSONEq(t, `[{"plugin": "none", "version": "", "jobTypes": null}, {"plugin": "p", "version": "1", "jobTypes": ["ECHO"]}]`, string(me.Plugins))
	require.True(t, me.StartedAt.Equal(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
	require.InDelta(t, 0, time.Since(me.LastHeartbeat), float64(time.Hour), "renewed")
	me.Plugins, me.StartedAt, me.LastHeartbeat = nil, time.Time{}, time.Time{}
	require.Equal(t, v1.Worker{
		WorkerID: worker, Host: "here", PID: 7, Roles: job.AllRoles(), Condition: job.WorkerAlive, Jobs: map[job.State]int64{job.Running: 2},
	}, me)
}

func TestLiveWorkersAreCountedByWhatTheyDo(t *testing.T) {
	s := open(t)
	served := json.RawMessage(`[{"plugin": "p", "version": "1", "jobTypes": ["B", "A"]}, {"plugin": "q", "version": "2", "jobTypes": ["C"]}]`)
	for _, id := range []string{"one", "two", "draining", "stopped", "silent"} {
		enlist(t, s, job.Worker{ID: id}, time.Hour)
		require.NoError(t, s.DescribeWorker(t.Context(), id, served))
	}
	enlist(t, s, job.Worker{ID: "api", Roles: job.Roles{job.RoleAPI}}, time.Hour)
	enlist(t, s, job.Worker{ID: "silent"}, -time.Second)
	require.NoError(t, s.DrainWorker(t.Context(), "draining"))
	discharge(t, s, "stopped")
	found, err := s.Surroundings(t.Context(), "here", "me")
	require.NoError(t, err)
	require.ElementsMatch(t, []job.Peers{
		{Processes: 2, Roles: job.AllRoles(), Types: []string{"A", "B", "C"}},
		{Processes: 1, Roles: job.Roles{job.RoleAPI}},
	}, found.Live)
}

func TestTheLeasesOfAnExpiredWorkerExpireAtOnce(t *testing.T) {
	s := open(t)
	enlist(t, s, job.Worker{ID: worker}, time.Hour)
	mine := []job.Claimed{running(t, s), running(t, s)}
	given(t, s)
	theirs, err := s.Claim(t.Context(), other, []string{jobType}, 1, aMinute)
	require.NoError(t, err)
	require.Len(t, theirs, 1)

	require.Equal(t, 2, discharge(t, s, worker, "nobody"))
	require.Empty(t, renew(t, s, time.Hour, mine[0].Lease, mine[1].Lease), "the dead do not renew")
	expired := reap(t, s, 10)
	require.Len(t, expired, 2)
	for _, e := range expired {
		require.Equal(t, worker, e.Worker)
		require.True(t, e.WorkerGone)
	}
	require.Len(t, renew(t, s, aMinute, theirs[0].Lease), 1)
	require.Zero(t, discharge(t, s))
	requireSound(t, s)
}

func TestWorkersThatFellSilentLongAgoAreForgotten(t *testing.T) {
	s := open(t)
	enlist(t, s, job.Worker{ID: "old"}, -25*time.Hour)
	enlist(t, s, job.Worker{ID: "recent"}, -23*time.Hour)
	enlist(t, s, job.Worker{ID: "new"}, time.Minute)
	require.Equal(t, []string{"new", "recent"}, ask[[]string](t, s, "select array_agg(worker_id order by worker_id) from workers"))
}

func TestAWorkerIsRegisteredOnce(t *testing.T) {
	s := open(t)
	enlist(t, s, job.Worker{ID: worker}, time.Minute)
	discharge(t, s, worker)
	enlist(t, s, job.Worker{ID: worker}, time.Hour)
	require.True(t, ask[bool](t, s, "select stopped_at is null and alive_until > now() + interval '59 minutes' from workers"))
}

func TestAWorkerSaysWhatItServes(t *testing.T) {
	s := open(t)
	enlist(t, s, job.Worker{ID: worker}, time.Minute)
	require.NoError(t, s.DescribeWorker(t.Context(), worker, json.RawMessage(`[{"plugin": "a"}]`)))
	require.Equal(t, `[{"plugin": "a"}]`, ask[string](t, s, "select plugins::text from workers"))
	require.ErrorIs(t, s.DescribeWorker(t.Context(), worker, json.RawMessage(`[`)), job.ErrBadData)
	require.NoError(t, s.DescribeWorker(t.Context(), "nobody", json.RawMessage(`[]`)))
}

func TestAProcessThatRunsNoJobsIsNotDrainedAndShowsNoPlugins(t *testing.T) {
	s := open(t)
	enlist(t, s, job.Worker{ID: "api", Roles: job.Roles{job.RoleAPI}}, time.Hour)
	enlist(t, s, job.Worker{ID: worker, Roles: job.Roles{job.RoleWorker}}, time.Hour)
	require.ErrorIs(t, s.DrainWorker(t.Context(), "api"), job.ErrNoWorker)
	require.ErrorIs(t, s.ResumeWorker(t.Context(), "api"), job.ErrNoWorker)
	require.NoError(t, s.DrainWorker(t.Context(), worker))

	everywhere, err := s.PluginsEverywhere(t.Context())
	require.NoError(t, err)
	require.Len(t, everywhere, 1)
	require.Equal(t, worker, everywhere[0].WorkerID)

	found, err := s.Workers(t.Context())
	require.NoError(t, err)
	roles := make(map[string]job.Roles)
	for _, w := range found {
		roles[w.WorkerID] = w.Roles
	}
	require.Equal(t, map[string]job.Roles{"api": {job.RoleAPI}, worker: {job.RoleWorker}}, roles)
}
