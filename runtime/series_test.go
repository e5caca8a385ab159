package runtime_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestASeriesAgreesWithTheLedger(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	const each = 40
	due := func(s *job.Submission) { s.RunAt = time.Now().Add(-3 * time.Minute) }
	many(t, db, each, atMost(2), due)
	many(t, db, each, atMost(2))
	w := launch(t, db, supervise(t, playing("p", 20, func(r *run) job.Outcome {
		switch r.JobID[15] % 3 {
		case 0:
			return succeeds(r)
		case 1:
			return fails(r)
		}
		return job.Outcome{Kind: job.Snoozed, RetryAfter: new(time.Hour)}
	}, echo)))
	await(t, func() bool {
		return ask[int](t, db, "select count(*) from current_jobs where state in ('succeeded', 'dead') or state = 'retry' and run_at > now() + interval '1 minute'") == 2*each
	}, "all jobs end or are put off")
	for _, id := range ask[[]string](t, db, "select coalesce(array_agg(job_id::text), '{}') from (select job_id from jobs where state = 'retry' limit 5) waiting") {
		waiting, err := job.ParseID(id)
		require.NoError(t, err)
		_, err = db.Cancel(t.Context(), waiting)
		require.NoError(t, err)
	}
	w.drain()
	w.awaitEnd(t) // which writes the latencies of the last seconds

	got, err := db.Series(t.Context(), v1.QuarterHour, "")
	require.NoError(t, err)
	count := func(of string) int64 { return int64(ask[int](t, db, "select count(*) from "+of)) }
	var sum v1.SeriesSlot
	var waits, runs int64
	for _, slot := range got.Slots {
		sum.Submitted += slot.Submitted
		sum.Succeeded += slot.Succeeded
		sum.Retried += slot.Retried
		sum.Dead += slot.Dead
		sum.Canceled += slot.Canceled
		require.Equal(t, int64(ask[int](t, db, `select count(*) from jobs where created_at < $1 and (finished_at is null or finished_at >= $1)`,
			slot.Start.Add(10*time.Second))), slot.Open, "open at the end of %s", slot.Start)
		if slot.Wait != nil {
			waits += slot.Wait.Attempts
		}
		if slot.Run != nil {
			runs += slot.Run.Attempts
		}
	}
	require.Equal(t, v1.SeriesSlot{
		Submitted: 2 * each, Succeeded: count("jobs where state = 'succeeded'"), Dead: count("jobs where state = 'dead'"),
		Canceled: count("jobs where state = 'canceled'"), Retried: count("jobs where state = 'dead'"), // one retry each
	}, sum)
	require.Equal(t, count("job_attempts"), waits)
	require.Equal(t, count("job_attempts"), runs)

	day, err := db.Series(t.Context(), v1.Day, echo)
	require.NoError(t, err)
	require.NotNil(t, day.Wait)
	all := ask[[]float64](t, db, "select array_agg(extract(epoch from claimed_at - due_at)::float8) from job_attempts")
	slices.Sort(all)
	for share, got := range map[float64]float64{0.5: day.Wait.P50, 0.95: day.Wait.P95, 0.99: day.Wait.P99} {
		truth := time.Duration(all[int(float64(len(all))*share+0.999999)-1] * float64(time.Second))
		above, upTo := job.LatencyBounds(job.LatencyBucket(truth))
		require.InDelta(t, (above+upTo).Seconds()/2, got, (upTo-above).Seconds()/2+1e-6, "p%g is in the bucket of %s", 100*share, truth)
	}
}
