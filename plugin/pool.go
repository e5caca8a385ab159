package plugin

import (
	"context"
	"runtime/pprof"
	"sync"
	"sync/atomic"
)

// maxIdle bounds the goroutines of a pool that wait for something to do. A message can start
// hundreds of attempts.
const maxIdle = 1000

// task is what a pool runs.
type task interface{ run() }

// pool runs tasks, each on a goroutine of its own as long as it takes, and
// reuses goroutines that are done. A new goroutine begins with a small stack, and
// growing that took a quarter of what a short job costs its process.
type pool struct {
	next    chan task
	leave   chan struct{}
	waiting atomic.Int64
}

func newPool() pool { return pool{next: make(chan task), leave: make(chan struct{})} }

// run runs t at once. The group counts its goroutine until the pool is closed.
func (p *pool) run(group *sync.WaitGroup, t task) {
	select {
	case p.next <- t:
	default:
		group.Go(func() { p.serve(t) })
	}
}

func (p *pool) serve(t task) {
	for again := true; again; {
		t.run()
		pprof.SetGoroutineLabels(context.Background()) // it may have left some
		t, again = p.wait()
	}
}

// wait returns the next task to run. It returns false when the goroutine should
// end.
func (p *pool) wait() (t task, again bool) {
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxIdle {
		return nil, false
	}
	select {
	case t = <-p.next:
		return t, true
	case <-p.leave:
		return nil, false
	}
}

// close ends the goroutines that have nothing to run.
func (p *pool) close() { close(p.leave) }
