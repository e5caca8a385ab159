package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

const (
	batchSize = 100
	clients   = 4
	// mostOpen is how many jobs may be open: a slow machine slows the clients down.
	mostOpen = 10_000

	workType, crashType, tickType = "SOAK_WORK", "SOAK_CRASH", "SOAK_TICK"
)

// load is the clients. The number of a job decides what it does.
type load struct {
	to   rig.Client
	pace *time.Ticker
	next int // the number of the next job
	// open is how many jobs are open.
	open atomic.Int64
}

func newLoad(to rig.Client, rate float64) *load {
	return &load{to: to, pace: time.NewTicker(time.Duration(batchSize / rate * float64(time.Second)))}
}

// submit submits so many jobs, rounded to whole batches.
func (l *load) submit(ctx context.Context, jobs int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan int)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for first := range batches {
				if err := l.batch(ctx, first); err != nil {
					cancel(err)
				}
			}
		})
	}
	for until := l.next + jobs; l.next < until && ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-l.pace.C:
			if l.open.Load() < mostOpen {
				batches <- l.next
				l.next += batchSize
			}
		}
	}
	close(batches)
	all.Wait()
	return context.Cause(ctx)
}

// batch submits the jobs from the given number on, and does other things that clients do.
func (l *load) batch(ctx context.Context, first int) error {
	jobs := make([]rig.Submission, 0, batchSize)
	for n := first; n < first+batchSize; n++ {
		jobs = append(jobs, submission(n))
	}
	ids, err := l.to.SubmitBatch(ctx, jobs)
	if err != nil {
		return err
	}
	held := jobs[heldOf100]
	again, err := l.to.Submit(ctx, held)
	if err == nil && again != ids[heldOf100] {
		err = fmt.Errorf("the key %s has the job %s, and then %s", held.IdempotencyKey, ids[heldOf100], again)
	}
	if err != nil {
		return err
	}
	if err := l.to.Call(ctx, http.MethodPost, "/jobs/"+ids[heldOf100]+"/cancel", nil, http.StatusOK, nil); err != nil {
		return err
	}
	if _, err := l.to.Get(ctx, ids[0]); err != nil {
		return err
	}
	return l.to.Call(ctx, http.MethodGet, "/jobs?limit=10", nil, http.StatusOK, nil)
}

// heldOf100 is the job of each hundred that is held, and then canceled.
const heldOf100 = 31

// submission is that of a job by its number.
func submission(n int) rig.Submission {
	s := rig.Submission{JobType: workType, MaxAttempts: 3}
	plan := map[string]string{"plan": "succeed"}
	switch {
	case n%100 == heldOf100:
		s.Hold = true
	case n%10_000 == 9:
		s.JobType, plan["plan"] = crashType, "crash"
	case n%1000 == 7:
		plan["plan"] = "sleep"
		s.Timeout, s.MaxAttempts = "1s", 2
	case n%500 == 11:
		plan["plan"] = "die"
	case n%200 == 5:
		plan["plan"], s.MaxAttempts = "exhaust", 2
	case n%50 == 3:
		plan["plan"] = "retry"
	case n%25 == 4:
		plan["plan"], plan["text"] = "report", strings.Repeat("text ", 500)
	case n%20 == 2:
		s.ConcurrencyKey, s.ConcurrencyLimit = fmt.Sprintf("soak:%d", n%50), 2
	}
	if n%10 == heldOf100%10 {
		s.IdempotencyKey = fmt.Sprint("soak-", n)
	}
	s.Payload = plan
	return s
}

// errTooLittle says that the run lacked something that it was about.
var errTooLittle = errors.New("the run has done too little")
