package schedules

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

func TestEachTickHasOneJobWhileOrchestratorsAreKilled(t *testing.T) {
	schedules, seconds, kills := 60, 6, 4
	if full {
		schedules, seconds, kills = 1000, 60, 1000
	}
	db := open(t)
	orchestrators := make([]*rig.Orchestrator, 3)
	for i := range orchestrators {
		orchestrators[i] = db.launch(t, i)
	}
	first := db.ahead(t, 5*time.Second)
	last := first.Add(time.Duration(seconds-1) * time.Second)
	db.set(t, schedules, time.Second, first, last)

	// One after the other is killed, each second, and started again.
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	starts := make([]errgroup.Group, len(orchestrators))
	killed := 0
	for ; killed < kills && db.count(t, `select count(*) from schedules where next_at is not null`) > 0; killed++ {
		<-pace.C
		victim := killed % len(orchestrators)
		require.NoError(t, starts[victim].Wait())
		require.NoError(t, orchestrators[victim].Kill())
		starts[victim] = errgroup.Group{}
		starts[victim].Go(func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), rigtest.Patience)
			defer cancel()
			_, err := orchestrators[victim].Start(ctx)
			return err
		})
	}
	for i := range starts {
		require.NoError(t, starts[i].Wait())
	}
	require.Eventually(t, func() bool { return db.count(t, `select count(*) from schedules where next_at is not null`) == 0 },
		rigtest.Patience, 50*time.Millisecond)

	want := schedules * seconds
	require.Equal(t, want, db.count(t, `select count(*) from jobs`))
	require.Equal(t, want, db.count(t, `select count(distinct (split_part(idempotency_key, '/', 2), run_at)) from jobs
		where idempotency_key = 'schedule/' || split_part(idempotency_key, '/', 2) || '/' || to_char(run_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
			and run_at between $1 and $2`, first, last), "each is of a tick of its own")
	require.Equal(t, want, db.count(t, `select sum(fired)::integer from schedules`))
	require.Zero(t, db.count(t, `select sum(skipped + missed + failed)::integer from schedules`))
	var median, most float64
	require.NoError(t, db.pool.QueryRow(t.Context(), `select percentile_cont(0.5) within group (order by lag), max(lag)
		from (select extract(epoch from created_at - run_at)::float8 as lag from jobs) lags`).Scan(&median, &most))
	t.Logf("%d jobs of %d schedules, %d kills; late by %.3f s in the median, %.3f s at most", want, schedules, killed, median, most)
}

// Ten thousand schedules of which none is due are only an index that is looked at each
// second.
func TestIdleSchedulesCostNothing(t *testing.T) {
	if !full {
		t.Skip("it measures: HOLDFAST_TEST_SCHEDULES=full")
	}
	const watched = 30 * time.Second
	usage := func(schedules int) (orchestrator, database time.Duration) {
		db := open(t)
		o := db.launch(t, 0)
		far := db.ahead(t, 24*time.Hour)
		db.set(t, schedules, time.Hour, far, far.Add(1000*time.Hour))
		_, err := db.pool.Exec(t.Context(), "vacuum analyze schedules")
		require.NoError(t, err)
		before, backendsBefore := processTime(t, o.PID()), backendTime(t, db)
		time.Sleep(watched) //nolint:forbidigo // the measured time
		return processTime(t, o.PID()) - before, backendTime(t, db) - backendsBefore
	}
	none, noneInDatabase := usage(0)
	many, manyInDatabase := usage(10_000)
	share := float64(many-none+manyInDatabase-noneInDatabase) / float64(watched)
	t.Logf("CPU in %s without schedules: %s and %s in the database; with 10,000: %s and %s: %.2f %% of a core more",
		watched, none, noneInDatabase, many, manyInDatabase, 100*share)
	require.Less(t, share, 0.01)
}
