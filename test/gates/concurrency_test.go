package gates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// limit is how many jobs of a key may run at once.
const limit = 3

// batch is how many jobs the tests submit in one request.
const batch = 500

func TestNoKeyExceedsItsLimitWhileOrchestratorsAreKilled(t *testing.T) {
	t.Parallel()
	jobs, keys := ofLength(1500, 50_000), ofLength(40, 200)
	random := rigtest.Seeded(t)
	// The jobs are not to blame for the kills, even if several kills hit the same job.
	s := newScene(t, 3, nil, "jobs.default.max_crashes=1000")

	submitted := make([]rig.Submission, jobs)
	for i := range submitted {
		key, millis := fmt.Sprintf("key-%d", i%keys), 20+random.IntN(80)
		if !full && i%25 == 0 {
			millis = 2000 // so that every kill hits some, however late it comes
		}
		submitted[i] = rig.Submission{
			JobType: "VISIT", IdempotencyKey: fmt.Sprint(i), ConcurrencyKey: key, ConcurrencyLimit: limit,
			Payload: visit{Millis: millis, Key: key, Places: limit},
		}
	}
	accepted := s.submitAll(t, submitted)
	kills := s.killUntilAllIsDone(t, jobs, random)
	require.NoError(t, <-accepted)

	s.everySuccessWasSeen(t, jobs)
	s.nothingIsLeft(t)
	lines := s.lines(t)
	for _, l := range lines {
		require.NotEqual(t, "over", l.what, "job %s began at %s while %d jobs of its key ran", l.id, l.at, limit)
	}
	interrupted := s.count(t, `select count(*) from job_attempts where outcome::text = 'interrupted'`)
	t.Logf("%d jobs of %d keys, %d kills, %d interrupted attempts, %d attempts", jobs, keys, kills, interrupted, len(begun(lines)))
	require.NotZero(t, interrupted, "the kills hit nothing, and the test has shown nothing")
}

// submitAll submits in batches, and returns before all are accepted. A batch without an
// answer is sent again to the next orchestrator.
func (s *scene) submitAll(t *testing.T, all []rig.Submission) (accepted <-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		clients, ctx := errgroup.WithContext(ctx)
		clients.SetLimit(4)
		for from := 0; from < len(all); from += batch {
			clients.Go(func() error { return s.submit(ctx, from/batch, all[from:min(from+batch, len(all))]) })
		}
		ended <- clients.Wait()
	}()
	return ended
}

func (s *scene) submit(ctx context.Context, first int, batch []rig.Submission) error {
	for try := first; ; try++ {
		_, err := s.orchestrators[try%len(s.orchestrators)].SubmitBatch(ctx, batch)
		refused := err != nil && strings.Contains(err.Error(), "answered 4")
		if err == nil || refused || ctx.Err() != nil {
			return err
		}
	}
}

// killUntilAllIsDone kills one orchestrator after the other, and starts each again at
// once. A short test has three kills, spread over the jobs; a long one has a kill each
// second.
func (s *scene) killUntilAllIsDone(t *testing.T, jobs int, random *rand.Rand) (kills int) {
	t.Helper()
	const done = `select count(*) from jobs where finished_at is not null`
	second := time.NewTicker(time.Second) // the pace of the kills
	defer second.Stop()
	starts := make([]errgroup.Group, len(s.orchestrators))
	started := func(i int) { require.NoError(t, starts[i].Wait()) }
	first := random.IntN(len(s.orchestrators))
	for ; full || kills < 3; kills++ {
		if full {
			<-second.C
		} else {
			s.awaitAtLeast(t, jobs*(kills+1)/5, done)
		}
		if s.count(t, done) == jobs {
			break
		}
		victim := (first + kills) % len(s.orchestrators)
		started(victim)
		require.NoError(t, s.orchestrators[victim].Kill())
		starts[victim] = errgroup.Group{}
		starts[victim].Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := s.orchestrators[victim].Start(ctx)
			return err
		})
	}
	for i := range starts {
		started(i)
	}
	require.Eventually(t, func() bool { return s.count(t, done) == jobs }, patience, glance, "all jobs end")
	return kills
}

// everySuccessWasSeen checks that every job has succeeded, under a fence under which a
// handler has finished, and that no handler has begun twice under one fence.
func (s *scene) everySuccessWasSeen(t *testing.T, jobs int) {
	t.Helper()
	began, ended := make(map[attempt]int), make(map[attempt]bool)
	for _, l := range s.lines(t) {
		switch l.what {
		case "begin":
			began[attempt{l.id, l.fence}]++
		case "end":
			ended[attempt{l.id, l.fence}] = true
		}
	}
	for a, times := range began {
		require.Equal(t, 1, times, "job %s began twice under fence %d", a.id, a.fence)
	}
	rows, err := s.db.Query(t.Context(), `select job_id::text, fence from job_attempts where outcome = 'succeeded'`)
	require.NoError(t, err)
	successes := make(map[string]bool)
	for rows.Next() {
		var a attempt
		require.NoError(t, rows.Scan(&a.id, &a.fence))
		require.True(t, ended[a], "job %s succeeded under fence %d, but no handler has finished", a.id, a.fence)
		require.False(t, successes[a.id], "job %s succeeded twice", a.id)
		successes[a.id] = true
	}
	require.NoError(t, rows.Err())
	require.Len(t, successes, jobs)
	require.Equal(t, jobs, s.count(t, `select count(*) from jobs where state = 'succeeded'`))
}
