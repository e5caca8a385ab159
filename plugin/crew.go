package plugin

import (
	"context"
	"runtime/pprof"
	"sync"
	"sync/atomic"
)

// maxIdle bounds the goroutines of a crew that wait for something to do.
const maxIdle = 200

// crew runs functions, each on a goroutine of its own as long as it takes. One
// that is done waits for another to run: a new goroutine begins with a small
// stack, and growing that took a quarter of what a short job costs its process.
type crew struct {
	next    chan func()
	leave   chan struct{}
	waiting atomic.Int64
}

func newCrew() crew { return crew{next: make(chan func()), leave: make(chan struct{})} }

// run runs f at once. The group counts its goroutine until the crew is dismissed.
func (c *crew) run(group *sync.WaitGroup, f func()) {
	select {
	case c.next <- f:
	default:
		group.Go(func() { c.serve(f) })
	}
}

func (c *crew) serve(f func()) {
	for again := true; again; {
		f()
		pprof.SetGoroutineLabels(context.Background()) // f may have left some
		f, again = c.wait()
	}
}

// wait returns the next function to run, if there will be one.
func (c *crew) wait() (f func(), again bool) {
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > maxIdle {
		return nil, false
	}
	select {
	case f = <-c.next:
		return f, true
	case <-c.leave:
		return nil, false
	}
}

// dismiss lets every goroutine end that has nothing to run.
func (c *crew) dismiss() { close(c.leave) }
