package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func series(t testing.TB, s *Store, window v1.SeriesWindow, jobType string) v1.Series {
	t.Helper()
	series, err := s.Series(t.Context(), window, jobType)
	require.NoError(t, err)
	return series
}

// total is what the slots have together, and the open jobs of the last.
func total(series v1.Series) (sum v1.SeriesSlot) {
	for _, slot := range series.Slots {
		sum.Submitted += slot.Submitted
		sum.Succeeded += slot.Succeeded
		sum.Retried += slot.Retried
		sum.Dead += slot.Dead
		sum.Canceled += slot.Canceled
		sum.Requeued += slot.Requeued
		sum.Open = slot.Open
	}
	return sum
}

func TestASeriesCountsWhatHappenedRolledUpOrNot(t *testing.T) {
	s := eventful(t)
	want := v1.SeriesSlot{Submitted: 9, Succeeded: 1, Retried: 1, Dead: 2, Canceled: 2, Requeued: 1, Open: 5}
	for range 2 {
		for _, window := range v1.SeriesWindows() {
			got := series(t, s, window, "")
			require.Len(t, got.Slots, window.Slots())
			require.Equal(t, want, total(got), window)
			require.EqualValues(t, 0, got.Slots[0].Open, "nothing was there before")
			last := got.Slots[len(got.Slots)-1]
			require.True(t, last.Partial)
			require.WithinRange(t, got.At, last.Start, last.Start.Add(window.Slot()))
			require.False(t, got.Slots[0].Partial)
		}
		rollUp(t, s)
	}
}

func TestASeriesOfOneTypeCountsNoOther(t *testing.T) {
	s := open(t)
	for _, jobType := range []string{"A", "A", "B"} {
		given(t, s, func(j *job.Submission) { j.Type = jobType })
	}
	given(t, s, func(j *job.Submission) { j.Type, j.Hold = "B", true })
	claimed, err := s.Claim(t.Context(), worker, []string{"A"}, 2, aMinute)
	require.NoError(t, err)
	settled(t, s, claimed[0], job.Success)
	require.Equal(t, v1.SeriesSlot{Submitted: 2, Succeeded: 1, Open: 1}, total(series(t, s, v1.Hour, "A")))
	require.Equal(t, v1.SeriesSlot{Submitted: 2, Open: 2}, total(series(t, s, v1.Hour, "B")))
	all := series(t, s, v1.Hour, "")
	require.Equal(t, v1.SeriesSlot{Submitted: 4, Succeeded: 1, Open: 3}, total(all))
	require.Len(t, all.JobTypes, 1, "of B, nothing has ended")
	require.Equal(t, "A", all.JobTypes[0].JobType)
}

func TestASeriesOfATypeThatNeverWasIsRefused(t *testing.T) {
	s := open(t)
	_, err := s.Cancel(t.Context(), given(t, s))
	require.NoError(t, err)
	exec(t, s, "update tallies set slot = slot - interval '30 days'")
	for range 2 {
		require.Zero(t, total(series(t, s, v1.Hour, jobType)), "it had jobs once")
		_, err = s.Series(t.Context(), v1.Hour, "nosuch")
		require.ErrorIs(t, err, job.ErrNoType)
		rollUp(t, s)
	}
	exec(t, s, `insert into job_types (job_type, plugin, version, max_attempts, timeout, retry) values ('NEW', 'p', 'v', 1, '1 s', '{}')`)
	require.Zero(t, total(series(t, s, v1.Hour, "NEW")), "it may have jobs soon")
}

func TestTheOpenJobsOfTheEndOfEachSlotFollowFromThoseOfToday(t *testing.T) {
	s := open(t)
	for range 3 {
		given(t, s)
	}
	settled(t, s, claim(t, s, 1)[0], job.Success)
	rollUp(t, s)
	// The three were submitted 30 minutes ago, and one succeeded 10 minutes ago.
	exec(t, s, `update tally_slots set slot = date_trunc('minute', now()) - case event when 'submitted' then interval '30 minutes' else interval '10 minutes' end`)
	var got []int64
	for _, slot := range series(t, s, v1.Hour, "").Slots {
		if n := len(got); n == 0 || got[n-1] != slot.Open {
			got = append(got, slot.Open)
		}
	}
	require.Equal(t, []int64{0, 3, 2}, got)
	recent := series(t, s, v1.QuarterHour, "").Slots
	require.EqualValues(t, 3, recent[0].Open)
	require.EqualValues(t, 2, recent[len(recent)-1].Open)
}

func latencies(t testing.TB, s *Store, ago time.Duration, batch ...job.TypeLatencies) time.Duration {
	t.Helper()
	passed, err := s.RecordLatencies(t.Context(), ago, batch)
	require.NoError(t, err)
	return passed
}

func TestLatenciesOfAllOrchestratorsAddUpInTheirSlot(t *testing.T) {
	s := open(t)
	passed := latencies(t, s, 0, job.TypeLatencies{Type: "A", Waits: job.Latencies{1}, Runs: job.Latencies{0, 2}}, job.TypeLatencies{Waits: job.Latencies{1}})
	require.Less(t, passed, job.LatencySlot)
	require.GreaterOrEqual(t, passed, time.Duration(0))
	exec(t, s, "update latency_slots set slot = slot - interval '20 seconds'")
	latencies(t, s, 20*time.Second, job.TypeLatencies{Type: "A", Waits: job.Latencies{1, 0, 5}})
	// The clock may have come to the next slot in between.
	require.LessOrEqual(t, ask[int](t, s, "select count(*) from latency_slots where job_type = 'A'"), 2)
	require.Equal(t, []int64{2, 0, 5}, sums(t, s, "waits"))
	require.Equal(t, []int64{0, 2}, sums(t, s, "runs"))
}

// sums are the latencies of type A, of all slots.
func sums(t testing.TB, s *Store, column string) []int64 {
	t.Helper()
	return ask[[]int64](t, s, `select array_agg(jobs order by n) from (
		select n, sum(jobs)::bigint as jobs from latency_slots cross join unnest(`+column+`) with ordinality as u (jobs, n)
		where job_type = 'A' group by n) summed`)
}

func TestASeriesSaysHowLongEachTypeRan(t *testing.T) {
	s := open(t)
	for _, jobType := range []string{"A", "B"} {
		given(t, s, func(j *job.Submission) { j.Type = jobType })
		claimed, err := s.Claim(t.Context(), worker, []string{jobType}, 1, aMinute)
		require.NoError(t, err)
		settled(t, s, claimed[0], job.Success)
	}
	latencies(t, s, 0, job.TypeLatencies{Type: "A", Runs: job.Latencies{0, 99}}, job.TypeLatencies{Type: "C", Runs: job.Latencies{5}}, job.TypeLatencies{Runs: job.Latencies{5, 99}})
	latencies(t, s, 10*time.Second, job.TypeLatencies{Type: "A", Waits: job.Latencies{7}, Runs: job.Latencies{0, 0, 0, 1}})
	for _, window := range []v1.SeriesWindow{v1.QuarterHour, v1.Hour} {
		all := series(t, s, window, "")
		require.EqualValues(t, 104, all.Run.Attempts, "the two slots of all types")
		require.Len(t, all.JobTypes, 2)
		require.EqualValues(t, 100, all.JobTypes[0].Run.Attempts)
		require.Less(t, all.JobTypes[0].Run.P95, 0.002)
		require.Nil(t, all.JobTypes[1].Run)
		one := series(t, s, window, "A")
		require.Equal(t, all.JobTypes[0].Run, one.Run)
		require.EqualValues(t, 7, one.Wait.Attempts)
	}
	require.Nil(t, series(t, s, v1.Day, "").JobTypes[0].Run)
	require.EqualValues(t, 100, series(t, s, v1.Day, "A").Run.Attempts)
}

func TestAgedLatenciesStayTheSameInLongerSlots(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into latency_slots
		select date_trunc('minute', now()) - interval '20 minutes' + i * interval '10 seconds', 'A', array[i, 1], case when i > 5 then '{1}'::bigint[] else '{}' end
		from generate_series(0, 11) i`)
	exec(t, s, "insert into latency_slots values (now() - interval '26 hours', 'A', '{7}', '{}'), (now(), 'A', '{100}', '{}')")
	exec(t, s, "insert into tallies (slot, job_type, worker_id, event, attempt, jobs, seconds) values (now(), 'A', '', 'submitted', 0, 1, 0)")
	require.NoError(t, s.AgeTallies(t.Context()))
	require.Equal(t, 3, ask[int](t, s, "select count(*) from latency_slots"))
	require.Equal(t, []int64{0 + 1 + 2 + 3 + 4 + 5, 6}, ask[[]int64](t, s, "select waits from latency_slots order by slot limit 1"))
	require.Equal(t, []int64{100 + 66, 12}, sums(t, s, "waits"))
	require.Equal(t, []int64{6}, sums(t, s, "runs"))
	require.NoError(t, s.AgeTallies(t.Context()))
	require.Equal(t, []int64{100 + 66, 12}, sums(t, s, "waits"))

	var attempts int64
	for _, slot := range series(t, s, v1.Hour, "A").Slots {
		if slot.Wait != nil {
			attempts += slot.Wait.Attempts
		}
	}
	require.EqualValues(t, 100+66+12, attempts)
}
