package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sent is the outcome of requests.
type sent struct {
	// took is sorted.
	took []time.Duration
	// due is when the request for each job was due.
	due     map[string]time.Time
	elapsed time.Duration
}

// latency returns a percentile of the requests' durations.
func (s sent) latency(share float64) time.Duration { return percentile(s.took, share) }

// crowd is a number of clients. Each waits for an answer before it sends again.
type crowd struct {
	address string
	clients int
	// requests are sent in turn, by each client.
	requests [][]byte
	// jobs fills sent.due.
	jobs bool
}

// flatOut sends so many requests, at least one, as fast as the answers come.
func (c crowd) flatOut(ctx context.Context, requests int) (sent, error) {
	var given atomic.Int64
	return c.send(ctx, func(int) (time.Time, bool) {
		return time.Now(), given.Add(1) <= int64(max(requests, 1))
	})
}

// warmUp sends requests for a while.
func (c crowd) warmUp(ctx context.Context, within time.Duration) (sent, error) {
	began := time.Now()
	return c.send(ctx, func(int) (time.Time, bool) { return time.Now(), time.Since(began) < within })
}

// steadily sends at a rate per second for a while, however long the answers take. A late
// request counts from when it was due.
func (c crowd) steadily(ctx context.Context, rate float64, within time.Duration) (sent, error) {
	began := time.Now()
	interval := time.Duration(float64(time.Second) * float64(c.clients) / rate)
	turns := make([]int, c.clients)
	return c.send(ctx, func(client int) (time.Time, bool) {
		due := began.Add(interval*time.Duration(turns[client]) + interval*time.Duration(client)/time.Duration(c.clients))
		turns[client]++
		if due.Sub(began) >= within {
			return due, false
		}
		time.Sleep(time.Until(due))
		return due, true
	})
}

// send sends requests with every client until next returns false. The time that next
// returns is when the request was due.
func (c crowd) send(ctx context.Context, next func(client int) (time.Time, bool)) (sent, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	all := sent{due: map[string]time.Time{}}
	began := time.Now()
	var clients sync.WaitGroup
	for client := range c.clients {
		clients.Go(func() {
			mine, err := c.client(ctx, client*len(c.requests)/c.clients, func() (time.Time, bool) { return next(client) })
			if err != nil {
				cancel(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all.took = append(all.took, mine.took...)
			for id, due := range mine.due {
				all.due[id] = due
			}
		})
	}
	clients.Wait()
	all.elapsed = time.Since(began)
	slices.Sort(all.took)
	return all, context.Cause(ctx)
}

func (c crowd) client(ctx context.Context, first int, next func() (time.Time, bool)) (sent, error) {
	mine := sent{due: map[string]time.Time{}}
	caller, err := call(c.address)
	if err != nil {
		return mine, err
	}
	defer caller.close()
	for turn := first; ctx.Err() == nil; turn++ {
		due, more := next()
		if !more {
			break
		}
		answer, err := caller.do(c.requests[turn%len(c.requests)])
		if err != nil {
			return mine, err
		}
		mine.took = append(mine.took, time.Since(due))
		if c.jobs {
			mine.due[jobID(answer)] = due
		}
	}
	return mine, nil
}
