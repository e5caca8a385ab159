package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// crash is a way in which a database dies, with the settings on which it depends what is lost.
type crash struct {
	name string
	// commit is that of the jobs: durable or fast.
	commit string
	// synchronous says that commits wait for the standby.
	synchronous bool
	// behind says that the standby has not received what was acknowledged last.
	behind bool
	// takesOver says that the standby becomes the primary, rather than that the primary
	// starts again.
	takesOver bool
	// worked says that the jobs are worked meanwhile. A claim waits for the disk, and everything
	// before it with it.
	worked bool
	// spares says that the database lives on, and the orchestrator is killed.
	spares bool
	// loses says whether acknowledged jobs may be lost.
	loses bool
}

var crashes = []crash{
	{name: "durable, one server is killed", commit: "durable"},
	{name: "durable, a synchronous standby takes over", commit: "durable", synchronous: true, takesOver: true},
	{name: "durable, an asynchronous standby takes over", commit: "durable", takesOver: true, loses: true},
	{name: "durable, an asynchronous standby that is behind takes over", commit: "durable", takesOver: true, behind: true, loses: true},
	{name: "fast, an orchestrator is killed", commit: "fast", spares: true},
	{name: "fast, one server is killed", commit: "fast", loses: true},
	{name: "fast, one server is killed while the jobs are worked", commit: "fast", worked: true, loses: true},
	{name: "fast, a synchronous standby takes over", commit: "fast", synchronous: true, takesOver: true, loses: true},
	{name: "fast, a synchronous standby that is behind takes over", commit: "fast", synchronous: true, takesOver: true, behind: true, loses: true},
}

// TestLossesAreMeasured measures how many acknowledged jobs each crash loses, and how long
// before the crash the oldest of them was acknowledged.
func TestLossesAreMeasured(t *testing.T) {
	times := number(t, "HOLDFAST_TEST_LOSSES", 0)
	if times == 0 {
		t.Skip("HOLDFAST_TEST_LOSSES is how many times each crash is measured: make losses")
	}
	random := rigtest.Seeded(t)
	table := "crash | acknowledged a second | lost: least, median, most | acknowledged before the crash, the oldest lost: median, most\n"
	for _, kind := range crashes {
		t.Run(kind.name, func(t *testing.T) {
			var all []losses
			for range times {
				found := kind.measure(t, random)
				t.Log(found)
				all = append(all, found)
			}
			table += kind.name + " | " + summary(all) + "\n"
		})
	}
	t.Log("\n" + table)
}

// losses is what one crash has lost.
type losses struct {
	acknowledged int
	lost         int
	// oldest is how long before the crash the first of the lost jobs was acknowledged.
	oldest time.Duration
	// rate is how many jobs were acknowledged a second.
	rate float64
}

func (l losses) String() string {
	return fmt.Sprintf("%d acknowledged, %.0f a second; %d lost, the oldest %s before the crash", l.acknowledged, l.rate, l.lost, l.oldest.Round(time.Millisecond/10))
}

func summary(all []losses) string {
	lost, oldest, rate := make([]int, len(all)), make([]time.Duration, len(all)), 0.0
	for i, one := range all {
		lost[i], oldest[i] = one.lost, one.oldest.Round(time.Millisecond/10)
		rate += one.rate / float64(len(all))
	}
	slices.Sort(lost)
	slices.Sort(oldest)
	last := len(all) - 1
	return fmt.Sprintf("%.0f | %d, %d, %d | %s, %s", rate, lost[0], lost[len(lost)/2], lost[last], oldest[len(oldest)/2], oldest[last])
}

func (c crash) measure(t *testing.T, random *rand.Rand) (found losses) {
	t.Helper()
	t.Run("once", func(t *testing.T) { // ends its processes before the next
		pair := c.pair(t)
		o := orchestrator(t, pair.Primary, "one", t.TempDir()+"/steps",
			append([]string{"jobs.accept_unknown_types=true", "jobs.default.commit=" + c.commit}, impatient...)...)
		rigtest.Start(t, o)
		jobType := "UNSERVED"
		if c.worked {
			jobType = "STEP"
		}
		sent := submitAll(t, o, jobType)
		sent.await(t, 1000+random.IntN(1000))
		if c.behind {
			pair.Stall()
			// What is under way on the link may still arrive.
			sent.await(t, 1000)
		}
		crashed := time.Now()
		if !c.spares {
			crashed = pair.KillAll(t)
		}
		require.NoError(t, o.Kill())
		sent.end()
		if !c.spares {
			c.recover(t, pair)
		}
		database := pair.Primary
		if c.takesOver {
			database = pair.Standby
		}
		found = sent.compare(t, database, crashed)
	})
	if !c.loses {
		require.Zero(t, found.lost, "acknowledged jobs are lost")
	}
	if c.behind {
		require.NotZero(t, found.lost, "the measurement finds nothing, although the standby has not received it")
	}
	return found
}

func (c crash) pair(t *testing.T) *pgtest.Pair {
	t.Helper()
	if c.synchronous {
		return pgtest.NewPair(t)
	}
	return pgtest.NewAsynchronousPair(t)
}

func (c crash) recover(t *testing.T, pair *pgtest.Pair) {
	t.Helper()
	if c.takesOver {
		pair.Promote(t)
	} else {
		pair.Restart(t)
	}
}

// acknowledgments are the answers to clients that submit one job after the other.
type acknowledgments struct {
	end func()

	mu    sync.Mutex
	began time.Time
	at    map[string]time.Time // when the answer arrived, by the job's id
}

func submitAll(t *testing.T, o *rig.Orchestrator, jobType string) *acknowledgments {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a := &acknowledgments{began: time.Now(), at: make(map[string]time.Time)}
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				id, err := o.Submit(ctx, rig.Submission{JobType: jobType, Payload: map[string]any{"millis": 1}})
				if err == nil {
					a.mu.Lock()
					a.at[id] = time.Now()
					a.mu.Unlock()
				}
			}
		})
	}
	a.end = func() { stop(); all.Wait() }
	t.Cleanup(a.end)
	return a
}

// await waits until so many further jobs are acknowledged.
func (a *acknowledgments) await(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.at)
	}
	from := count()
	require.Eventually(t, func() bool { return count() >= from+more }, patience, time.Millisecond, "jobs are acknowledged")
}

// compare looks for the acknowledged jobs in the database.
func (a *acknowledgments) compare(t *testing.T, database string, crashed time.Time) losses {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), "select job_id::text from jobs")
	require.NoError(t, err)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	there := make(map[string]bool, len(stored))
	for _, id := range stored {
		there[id] = true
	}
	found := losses{acknowledged: len(a.at), rate: float64(len(a.at)) / crashed.Sub(a.began).Seconds()}
	for id, at := range a.at {
		if !there[id] {
			found.lost++
			found.oldest = max(found.oldest, crashed.Sub(at))
		}
	}
	return found
}
