package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEachJobOfManyTypesAndPrioritiesRunsOnce(t *testing.T) {
	db := fresh(t)
	s := supervise(t,
		playing("letters", 7, succeeds, "A", "B"), playing("numbers", 3, succeeds, "ONE"), playing("none", 5, succeeds, "UNUSED"))
	p := launch(t, db, s)
	const each = 100
	var ids []job.ID
	for i := range each {
		for _, jobType := range []string{"A", "B", "ONE"} {
			receipt, err := p.Submit(t.Context(), submission(t, ofType(jobType), func(s *job.Submission) {
				s.Priority = int16(i%5 - 2)
			}))
			require.NoError(t, err)
			ids = append(ids, receipt.ID)
		}
	}
	awaitAll(t, db, len(ids), job.Succeeded)
	p.drain()
	p.awaitEnd(t)

	requireSettled(t, db)
	require.Equal(t, len(ids), ask[int](t, db, "select count(*) from job_attempts where attempt = 1 and outcome = 'succeeded'"))
	require.Equal(t, len(ids), ask[int](t, db, "select count(*) from job_attempts"))
	require.Len(t, s.started(), len(ids))
	for _, h := range s.plugins {
		require.LessOrEqual(t, h.mostBusy, h.slots, h.name)
	}
	last := attempts(t, db, ids[len(ids)-1])[0]
	require.Equal(t, []string{"numbers", "v1", p.worker.ID}, []string{last.Plugin, last.PluginVersion, last.WorkerID})
}

func TestUrgentJobsStartFirstAndThenTheOldest(t *testing.T) {
	db := fresh(t)
	var want []string
	for _, priority := range []int16{-1, 5, 0} {
		for i := range 3 {
			given(t, db, func(s *job.Submission) {
				s.Priority, s.Payload = priority, fmt.Appendf(nil, `"%d/%d"`, priority, i)
			})
		}
	}
	for _, priority := range []int{5, 0, -1} {
		for i := range 3 {
			want = append(want, fmt.Sprintf(`"%d/%d"`, priority, i))
		}
	}
	s := supervise(t, playing("one by one", 1, succeeds, echo))
	launch(t, db, s)
	awaitAll(t, db, len(want), job.Succeeded)
	var got []string
	for _, r := range s.started() {
		got = append(got, string(r.Payload))
	}
	require.Equal(t, want, got)
}

func TestAThousandJobsThatAlwaysFailAreDeadAfterThreeAttemptsEach(t *testing.T) {
	db := fresh(t)
	const jobs = 1000
	many(t, db, jobs, atMost(3))
	var workers []*supervisor
	for range 2 {
		s := supervise(t, playing("failing", 50, fails, echo))
		launch(t, openAt(t, db.url), s)
		workers = append(workers, s)
	}
	awaitAll(t, db, jobs, job.Dead)
	requireSettled(t, db)
	require.Equal(t, jobs, ask[int](t, db, `
		select count(*) from (
			select from job_attempts where outcome = 'failed' and error = 'it broke' and error_code = 'E1'
			group by job_id having array_agg(attempt order by fence) = '{1,2,3}'
		) whole`))
	require.Equal(t, 3*jobs, ask[int](t, db, "select count(*) from job_attempts"))
	require.Equal(t, 3*jobs, len(workers[0].started())+len(workers[1].started()))
	for i, s := range workers {
		require.NotEmpty(t, s.started(), "worker %d had nothing to do", i)
	}
}

func TestAHandlerGetsTheExactPayloadAndTheJobsDetails(t *testing.T) {
	db := fresh(t)
	id := given(t, db, func(s *job.Submission) {
		s.Payload = []byte(`{"b":1.50, "a":"\u0000"}`)
		s.Tenant = "acme"
		s.Trace = job.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "k=v"}
	})
	s := supervise(t, playing("p", 1, inTurn(fails, succeeds), echo))
	launch(t, db, s)
	awaitState(t, db, id, job.Succeeded)
	first, second := s.started()[0], s.started()[1]
	require.Equal(t, `{"b":1.50, "a":"\u0000"}`, string(first.Payload))
	require.Equal(t, "acme", first.Tenant)
	require.Equal(t, "k=v", first.Trace.State)
	require.Equal(t, []int{1, 2}, []int{first.Attempt, second.Attempt})
	require.Equal(t, 4, first.MaxAttempts)
	require.Greater(t, second.Fence, first.Fence)
	require.NotEqual(t, first.ID, second.ID)
	for _, r := range []*run{first, second} {
		require.Positive(t, r.LeaseFor)
		require.LessOrEqual(t, r.LeaseFor.Seconds(), 10.0)
	}
}

func TestInvalidConfigurationsAreRefused(t *testing.T) {
	whole := runtime.Config{}
	launchable := func(c *runtime.Config) { whole = *c }
	p := launch(t, fresh(t), supervise(t), launchable)
	p.drain()
	p.awaitEnd(t)
	for name, spoil := range map[string]func(*runtime.Config){
		"no worker":         func(c *runtime.Config) { c.Worker.ID = "" },
		"no resolve":        func(c *runtime.Config) { c.Resolve = nil },
		"no log":            func(c *runtime.Config) { c.Log = nil },
		"no meter":          func(c *runtime.Config) { c.Meter = nil },
		"no concurrency":    func(c *runtime.Config) { c.Concurrency = 0 },
		"too short a lease": func(c *runtime.Config) { c.Lease = 1 },
		"no poll":           func(c *runtime.Config) { c.PollInterval = 0 },
		"no kill grace":     func(c *runtime.Config) { c.KillGrace = 0 },
		"negative drain":    func(c *runtime.Config) { c.DrainTimeout = -1 },
		"no max crashes":    func(c *runtime.Config) { c.MaxCrashes = nil },
		"no after crash":    func(c *runtime.Config) { c.CrashPolicy = "" },
		"no job log":        func(c *runtime.Config) { c.JobLog = "" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := whole
			spoil(&cfg)
			_, err := runtime.New(cfg, nil, nil)
			require.Error(t, err)
		})
	}
	_, err := runtime.New(whole, nil, nil)
	require.NoError(t, err)
}
