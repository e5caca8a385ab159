package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func age(t testing.TB, s *Store, after time.Duration) []job.ID {
	t.Helper()
	raised, err := s.Age(t.Context(), after, func(jobType string) bool { return jobType == "PAUSED" })
	require.NoError(t, err)
	return idsOf(raised)
}

func at(priority int16, due time.Duration) func(*job.Submission) {
	return func(j *job.Submission) { j.Priority, j.Delay = priority, -due }
}

// While urgent jobs arrive as fast as jobs are done, one that is not urgent gets its turn
// only if it ages.
func TestAJobThatHasWaitedLongIsNoLongerOvertaken(t *testing.T) {
	for _, ages := range []bool{false, true} {
		s := open(t)
		low := given(t, s, at(0, time.Hour))
		given(t, s, at(5, time.Minute))
		done := false
		for range 20 {
			given(t, s, at(5, 0))
			if ages {
				age(t, s, 10*time.Minute)
			}
			s.marks = newLowWaterMarks()
			for _, c := range claim(t, s, 1) {
				settled(t, s, c, job.Success)
				done = done || c.JobID == low
			}
		}
		require.Equal(t, ages, done)
		requireSound(t, s)
	}
}

func TestOnlyJobsThatHaveWaitedLongAreRaised(t *testing.T) {
	s := open(t)
	var want []job.ID
	for n := range ageJobs + 50 {
		want = append(want, given(t, s, at(-3, time.Hour+time.Duration(n)*time.Second)))
	}
	want = append(want, given(t, s, at(1, 11*time.Minute)))
	given(t, s, at(1, 9*time.Minute))
	given(t, s, at(2, time.Minute))
	for _, other := range []string{"ALONE", "PAUSED"} {
		ofOther := func(j *job.Submission) { j.Type = other }
		given(t, s, at(0, time.Hour), ofOther)
		if other == "PAUSED" {
			given(t, s, at(9, time.Hour), ofOther)
		}
	}
	require.ElementsMatch(t, want, age(t, s, 10*time.Minute))
	require.Equal(t, len(want)+1, ask[int](t, s, "select count(*) from jobs where priority = 2"))
	require.Empty(t, age(t, s, 10*time.Minute))
	requireSound(t, s)
}

func TestJobsAtAGateAge(t *testing.T) {
	s := open(t)
	rules := limitedBy(concurrency(job.LimitKey, "*", 1))
	key := job.Terms{ConcurrencyKey: "k"}
	old := parks(t, s, rules, key, at(0, time.Hour))
	parks(t, s, rules, key, at(0, 0))
	parks(t, s, rules, key, at(7, 0))
	parks(t, s, rules, job.Terms{ConcurrencyKey: "other"}, at(0, time.Hour))
	require.Equal(t, []job.ID{old}, age(t, s, 10*time.Minute))
	require.Equal(t, int16(-7), placeOf(t, s, old).Urgency)
	admitAll(t, s, rules)
	require.Equal(t, old, claim(t, s, 1)[0].JobID)
	requireSound(t, s)
}

// The virtual time of a turn says nothing about how long a job has waited.
func TestAJobWithATurnAgesByItsDueTimeAndGetsANewTurn(t *testing.T) {
	s := open(t)
	recent, old := readyWithGates(t, s, new(true)), readyWithGates(t, s, new(true))
	exec(t, s, "update jobs set run_at = now() - interval '1 hour' where job_id = $1", postgres.UUID(old))
	given(t, s, at(7, 0))
	require.Equal(t, []job.ID{old}, age(t, s, 10*time.Minute))
	require.Equal(t, place{"parked", gatesOf[0], -7, true, false, "3 queue"}, placeOf(t, s, old))
	require.Equal(t, place{List: "ready", Turn: true}, placeOf(t, s, recent))
	requireSound(t, s)
}

func TestOneProcessAtATimeAgesJobs(t *testing.T) {
	s := open(t)
	given(t, s, at(0, time.Hour))
	given(t, s, at(1, 0))
	unlock := locked(t, s, "select pg_advisory_xact_lock(4653012)")
	require.Empty(t, age(t, s, time.Minute))
	unlock()
	require.Len(t, age(t, s, time.Minute), 1)
}
