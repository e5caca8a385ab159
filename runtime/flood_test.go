package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	stdruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reporting every so often at most.
func reporting(every time.Duration) func(*runtime.Config) {
	return func(c *runtime.Config) { c.ReportInterval = every }
}

// What many attempts report in a loop, one of them large, neither holds up others
// nor gathers in memory, nor is written more often than it may.
func TestAttemptsThatReportWithoutEndDelayNoOthers(t *testing.T) {
	db := fresh(t)
	const floods, others, every = 5, 200, 200 * time.Millisecond
	flooding := many(t, db, floods, ofType("FLOOD"))
	var statements atomic.Int64
	hooked := &hooked{Store: db, called: func(_ context.Context, verb string) {
		if verb == "note" {
			statements.Add(1)
		}
	}}
	over := make(chan struct{})
	large := []byte(`"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"`)
	flood := playing("flood", floods, func(r *run) job.Outcome {
		for i := 0; ; i++ {
			select {
			case <-over:
				r.Progress([]byte(`"the last"`))
				return job.Outcome{Kind: job.Success}
			case <-r.killed:
				return job.Outcome{Kind: job.Failure}
			default:
				r.Progress(fmt.Append(nil, i))
				r.Reporter.Checkpoint(bytes.Clone(large))
			}
			stdruntime.Gosched()
		}
	}, "FLOOD")
	goroutines := stdruntime.NumGoroutine()
	s := supervise(t, flood, playing("good", 10, succeeds, echo))
	worker := launch(t, hooked, s, reporting(every))
	for _, id := range flooding {
		awaitState(t, db, id, job.Running)
	}
	began, before := time.Now(), statements.Load()
	many(t, db, others)
	worker.JobsReady()
	awaitAll(t, db, others, job.Succeeded)
	var peak stdruntime.MemStats
	stdruntime.ReadMemStats(&peak)
	require.Less(t, stdruntime.NumGoroutine()-goroutines, 100)
	close(over)
	for _, id := range flooding {
		awaitState(t, db, id, job.Succeeded)
		require.Equal(t, `"the last"`, string(view(t, db, id).Progress))
	}
	// A large one goes alone.
	most := floods * (int64(time.Since(began)/every) + 3)
	require.LessOrEqual(t, statements.Load()-before, most)
	require.Less(t, peak.HeapAlloc, uint64(300<<20))
}
