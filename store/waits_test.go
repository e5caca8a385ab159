package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// park moves a queued job into a lane.
func park(t testing.TB, s *Store, id job.ID, lane string) {
	t.Helper()
	exec(t, s, `with taken as (delete from ready where job_id = $1 returning *)
		insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt)
		select r.job_id, $2, r.urgency, r.run_at, r.job_type, j.tenant, array[$2], r.attempt
		from taken r join jobs j using (job_id)`, postgres.UUID(id), lane)
	exec(t, s, "update jobs set gates = array[$2] where job_id = $1", postgres.UUID(id), lane)
}

// waitsOf returns what a job waits for, in words.
func waitsOf(t testing.TB, s *Store, id job.ID) (waits []string) {
	t.Helper()
	for _, wait := range detail(t, s, id).Waits {
		waits = append(waits, wait.Message)
	}
	return waits
}

func TestTheDetailSaysWhatAJobWaitsFor(t *testing.T) {
	s := open(t)
	serving(t, s, "alive", time.Hour, jobType, "OTHER")
	due := time.Now().Add(time.Hour)
	held := given(t, s, func(j *job.Submission) { j.Hold = true })
	later := given(t, s, func(j *job.Submission) { j.RunAt = due })
	failed := inState(t, s, job.Retry)
	require.Equal(t, []string{"held until it is released"}, waitsOf(t, s, held))
	require.Equal(t, []string{"scheduled for " + due.UTC().Format(time.RFC3339)}, waitsOf(t, s, later))
	require.WithinDuration(t, due, detail(t, s, later).Waits[0].Until, time.Millisecond)
	require.Contains(t, waitsOf(t, s, failed)[0], "the next attempt is due at ")
	for _, state := range []job.State{job.Running, job.Succeeded, job.Dead, job.Canceled} {
		require.Empty(t, waitsOf(t, s, inState(t, s, state)))
	}

	first := given(t, s)
	second := given(t, s)
	urgent := given(t, s, func(j *job.Submission) { j.Priority = 5 })
	given(t, s, func(j *job.Submission) { j.Type, j.Priority = "OTHER", 9 })
	unserved := given(t, s, func(j *job.Submission) { j.Type = "NOBODYS" })
	require.Equal(t, []string{"queued, next to be claimed"}, waitsOf(t, s, urgent))
	require.Equal(t, []string{"queued, behind 1 job"}, waitsOf(t, s, first))
	require.Equal(t, []string{"queued, behind 2 jobs"}, waitsOf(t, s, second))
	require.Equal(t, []string{"no live worker serves the type NOBODYS", "queued, next to be claimed"}, waitsOf(t, s, unserved))

	exec(t, s, "update ready set turn = true, run_at = '2001-01-01' where job_id = $1", postgres.UUID(second))
	require.Equal(t, []string{"queued, behind 1 job"}, waitsOf(t, s, second), "its turn comes before the first")
}

func TestTheDetailSaysWhatIsPaused(t *testing.T) {
	s := open(t)
	serving(t, s, "alive", time.Hour, jobType)
	id := given(t, s, func(j *job.Submission) { j.Tenant = "acme" })
	exec(t, s, "insert into type_owners (job_type, plugin) values ($1, 'mail')", jobType)
	exec(t, s, `insert into pauses (scope, name, reason, paused_by, until) values
		('type', $1, 'migration', 'ann', null), ('plugin', 'mail', '', '', null), ('tenant', 'acme', 'unpaid', 'bob', null),
		('tenant', 'other', '', '', null), ('type', 'OTHER', '', '', null), ('all', '', 'over', '', now() - interval '1 second')`, jobType)
	require.Equal(t, []string{
		"plugin mail paused", "type paused by ann: migration", "tenant paused by bob: unpaid",
	}, waitsOf(t, s, id))
	exec(t, s, "update pauses set until = '2100-01-01T00:00:00Z' where scope = 'all'")
	require.Equal(t, "everything paused until 2100-01-01T00:00:00Z: over", waitsOf(t, s, id)[0])
}

func TestTheDetailSaysWhatIsUsedOfALimit(t *testing.T) {
	s := open(t)
	serving(t, s, "alive", time.Hour, jobType)
	first, second := given(t, s), given(t, s)
	key := string(job.NewGate(job.GateKey, job.DefaultTenant, "customer:7"))
	park(t, s, first, key)
	park(t, s, second, key)
	require.Equal(t, []string{"about to be admitted"}, waitsOf(t, s, first))
	exec(t, s, "insert into limits (scope, name, concurrency) values ('key', '*', 9), ('key', 'customer', 3), ('key', 'other', 1)")
	exec(t, s, "insert into slots (gate, used) values ($1, 3)", key)
	require.Equal(t, []string{"waits for a slot of key customer:7 (3 of 3 running)"}, waitsOf(t, s, first))
	wait := detail(t, s, second).Waits[0]
	require.Equal(t, "waits for a slot of key customer:7 (3 of 3 running), behind 1 job", wait.Message)
	three := 3
	require.Equal(t, job.Wait{
		Reason: job.WaitKey, Message: wait.Message, Gate: job.Gate(key), Used: 3, Limit: &three, Ahead: 1,
	}, wait)
	exec(t, s, "delete from limits where name = 'customer'")
	require.Equal(t, []string{"about to be admitted"}, waitsOf(t, s, first))
	exec(t, s, "update parked set capacity = 2 where job_id = $1", postgres.UUID(first))
	require.Equal(t, []string{"waits for a slot of key customer:7 (3 of 2 running)"}, waitsOf(t, s, first))
	exec(t, s, "update parked set lane = 'new' || substr(lane, 4)")
	require.Equal(t, []string{"waits for a slot of key customer:7 (3 of 2 running)"}, waitsOf(t, s, first))
}

func TestTheDetailSaysWhenARateAllowsAJob(t *testing.T) {
	s := open(t)
	serving(t, s, "alive", time.Hour, jobType)
	started, starting, waiting := given(t, s), given(t, s), given(t, s)
	gate := string(job.NewGate(job.GateType, "", jobType))
	park(t, s, waiting, gate)
	exec(t, s, "insert into limits (scope, name, rate, period, burst) values ('type', $1, 60, '1 minute', 5)", jobType)
	require.Equal(t, []string{"about to be admitted"}, waitsOf(t, s, waiting), "the burst is left")
	exec(t, s, "insert into slots (gate, used, tokens, tokens_at) values ($1, 2, -8, now())", gate)
	exec(t, s, `insert into admitted (gate, job_id, job_type, urgency, position)
		select $1, job_id, job_type, urgency, run_at from ready`, gate)
	exec(t, s, "delete from ready where job_id = $1", postgres.UUID(started))
	wait := detail(t, s, waiting).Waits[0]
	require.Equal(t, job.WaitRate, wait.Reason)
	require.Regexp(t, `^rate limit of job type ECHO \(60/1m\), about (9|10) s$`, wait.Message)
	exec(t, s, "delete from ready where job_id = $1", postgres.UUID(starting))
	require.Regexp(t, `about [89] s$`, waitsOf(t, s, waiting)[0])
}
