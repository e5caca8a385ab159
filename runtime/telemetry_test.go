package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// metered returns a change that has a worker measured, and its readings.
func metered(t testing.TB) (func(*runtime.Config), *readings) {
	t.Helper()
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	return func(c *runtime.Config) { c.Meter = provider.Meter("test") }, &readings{t: t, reader: reader}
}

type readings struct {
	t      testing.TB
	reader *sdk.ManualReader
}

// of returns the instrument's values by their labels, as in
// "ECHO succeeded": of a histogram, how often it was recorded.
func (r *readings) of(name string) map[string]int64 {
	r.t.Helper()
	values := make(map[string]int64)
	r.each(name, func(labels string, value, _ int64) { values[labels] = value })
	return values
}

// sum returns what was recorded with a label in a histogram of whole numbers.
func (r *readings) sum(name, label string) int64 {
	r.t.Helper()
	var total int64
	r.each(name, func(labels string, _, sum int64) {
		if labels == label {
			total += sum
		}
	})
	return total
}

func (r *readings) each(name string, see func(labels string, value, sum int64)) {
	r.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(r.t, r.reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, metric := range scope.Metrics {
			if metric.Name != name {
				continue
			}
			switch data := metric.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					see(labelValues(point.Attributes), point.Value, 0)
				}
			case metricdata.Gauge[int64]:
				for _, point := range data.DataPoints {
					see(labelValues(point.Attributes), point.Value, 0)
				}
			case metricdata.Histogram[int64]:
				for _, point := range data.DataPoints {
					see(labelValues(point.Attributes), int64(point.Count), point.Sum)
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					see(labelValues(point.Attributes), int64(point.Count), 0)
				}
			}
		}
	}
}

// labelValues are in the order of the labels' names.
func labelValues(set attribute.Set) string {
	var values []string
	for _, label := range set.ToSlice() {
		values = append(values, label.Value.AsString())
	}
	return strings.Join(values, " ")
}

func TestCountsAgreeWithTheLedger(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	many(t, db, 40, ofType("GOOD"))
	many(t, db, 15, ofType("BAD"), atMost(3))
	many(t, db, 10, ofType("SHAKY"))
	canceled := given(t, db, ofType("LONG"))
	snoozes := time.Millisecond
	s := supervise(t, playing("p", 8, succeeds, "GOOD"), playing("q", 8, fails, "BAD"), playing("s", 1, stops, "LONG"),
		playing("r", 8, func(r *run) job.Outcome {
			switch r.Fence {
			case 1:
				return job.Outcome{Kind: job.Crash}
			case 2:
				return job.Outcome{Kind: job.Snoozed, RetryAfter: &snoozes}
			case 3:
				return job.Outcome{Kind: job.Released}
			}
			return job.Outcome{Kind: job.Success}
		}, "SHAKY"))
	p := launch(t, db, s, measured)
	awaitState(t, db, canceled, job.Running)
	_, err := db.Cancel(t.Context(), canceled)
	require.NoError(t, err)
	p.CancelAsked()
	receipt, err := p.Submit(t.Context(), submission(t, ofType("GOOD")))
	require.NoError(t, err)
	awaitState(t, db, receipt.ID, job.Succeeded)
	awaitAll(t, db, 51, job.Succeeded)
	awaitAll(t, db, 15, job.Dead)
	awaitState(t, db, canceled, job.Canceled)
	p.drain()
	p.awaitEnd(t)

	rows, err := db.pool.Query(t.Context(), `
		select job_type || ' ' || a.outcome::text, count(*)
		from job_attempts a join jobs using (job_id) group by job_type, a.outcome`)
	require.NoError(t, err)
	ledger := make(map[string]int64)
	var label string
	var n, attempts int64
	for rows.Next() {
		require.NoError(t, rows.Scan(&label, &n))
		ledger[label] = n
		attempts += n
	}
	require.NoError(t, rows.Err())
	require.Equal(t, map[string]int64{
		"GOOD succeeded": 41, "BAD failed": 45, "LONG canceled": 1,
		"SHAKY crashed": 10, "SHAKY snoozed": 10, "SHAKY given_back": 10, "SHAKY succeeded": 10,
	}, ledger)
	require.Equal(t, ledger, counts.of("holdfast.attempts"))
	require.Equal(t, ledger, counts.of("holdfast.attempt.duration"))
	require.Equal(t, map[string]int64{"GOOD": 41, "BAD": 45, "LONG": 1, "SHAKY": 40}, counts.of("holdfast.claim.latency"))
	require.Equal(t, attempts, counts.sum("holdfast.batch.size", "claim"))
	require.Equal(t, attempts, counts.sum("holdfast.batch.size", "settle"))
	require.Equal(t, int64(1), counts.sum("holdfast.batch.size", "submit"))
	require.Equal(t, map[string]int64{"": 0}, counts.of("holdfast.leases.held"))
	require.Equal(t, map[string]int64{"unproven": 0, "settle": 0}, counts.of("holdfast.lease.losses"))
	require.Positive(t, counts.of("holdfast.hints.sent")[string(job.JobsReady)])
	require.Positive(t, counts.of("holdfast.hints.heard")[string(job.JobsReady)])
	for operation, errors := range counts.of("holdfast.database.errors") {
		if operation != "hint" { // a busy machine may take longer than a hint waits, and it is sent again
			require.Zero(t, errors, operation)
		}
	}
}

func TestClaimLatencyUsesTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	given(t, db, func(s *job.Submission) { s.RunAt = time.Now().Add(-time.Minute) })
	claimed, err := db.Claim(t.Context(), "w", []string{echo}, 1, time.Minute)
	require.NoError(t, err)
	require.Equal(t, ask[time.Time](t, db, "select claimed_at from leases"), claimed[0].ClaimedAt)
	require.Equal(t, ask[time.Time](t, db, "select run_at from jobs"), claimed[0].RunAt)
}

func TestALeaseThatIsLostIsCountedWhereItWasAndWhereItIsNow(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	losing, losers := metered(t)
	reaping, reapers := metered(t)
	given(t, db)
	s := supervise(t, playing("p", 1, inTurn(clings, stops), echo))
	// It is deaf, since a worker that begins to listen renews its leases.
	p := launch(t, neverReaping{&hooked{Store: db, listen: deaf}}, s, losing, leasing(aLongTime))
	first := awaitRun(t, s, 1)
	require.Equal(t, map[string]int64{"": 1}, losers.of("holdfast.leases.held"))

	// It expires behind its owner's back, and another worker reaps it.
	expired := ask[string](t, db, "update leases set expires_at = now() returning lease_id::text")
	launch(t, openAt(t, db.url), supervise(t), reaping, leasing(300*time.Millisecond))
	await(t, func() bool {
		return ask[int](t, db, "select count(*) from leases where lease_id = $1::text::uuid", expired) == 0
	})
	p.CancelAsked() // makes for a heartbeat
	awaitSignal(t, first.stopped, "the attempt to be stopped")
	await(t, func() bool { return losers.of("holdfast.lease.losses")["settle"] == 1 }, "its end is to be refused")
	require.Equal(t, map[string]int64{"unproven": 1, "settle": 1}, losers.of("holdfast.lease.losses"))
	await(t, func() bool { return reapers.of("holdfast.attempts")["ECHO lease_expired"] == 1 })
	require.Equal(t, map[string]int64{"lease_expired": 1, "worker_gone": 0}, reapers.of("holdfast.jobs.reaped"))
	require.Zero(t, losers.of("holdfast.attempts")["ECHO given_back"])
}

// neverReaping leaves expired leases to other workers.
type neverReaping struct{ runtime.Store }

func (neverReaping) Reap(context.Context, int, time.Duration) ([]job.Expired, error) { return nil, nil }

func TestADatabaseThatDoesNotAnswerIsCounted(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	id := given(t, db)
	tries := 0
	ledger := &hooked{Store: db, claimed: func(err error) error {
		if tries++; tries <= 2 {
			return fmt.Errorf("claim: %w", job.ErrUnavailable)
		}
		return err
	}}
	launch(t, ledger, supervise(t, playing("p", 1, succeeds, echo)), measured)
	awaitState(t, db, id, job.Succeeded)
	require.Equal(t, int64(2), counts.of("holdfast.database.errors")["claim"])
	require.Zero(t, counts.of("holdfast.database.errors")["settle"])
}
