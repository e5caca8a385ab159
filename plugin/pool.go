package plugin

import (
	"context"
	"runtime/pprof"
	"sync"
	"sync/atomic"
)

// maxIdle bounds the goroutines of a pool that wait for something to do.
const maxIdle = 200

// pool runs functions, each on a goroutine of its own as long as it takes, and
// reuses goroutines that are done. A new goroutine begins with a small stack, and
// growing that took a quarter of what a short job costs its process.
type pool struct {
	next    chan func()
	leave   chan struct{}
	waiting atomic.Int64
}

func newPool() pool { return pool{next: make(chan func()), leave: make(chan struct{})} }

// run runs f at once. The group counts its goroutine until the pool is closed.
func (p *pool) run(group *sync.WaitGroup, f func()) {
	select {
	case p.next <- f:
	default:
		group.Go(func() { p.serve(f) })
	}
}

func (p *pool) serve(f func()) {
	for again := true; again; {
		f()
		pprof.SetGoroutineLabels(context.Background()) // f may have left some
		f, again = p.wait()
	}
}

// wait returns the next function to run. It returns false when the goroutine should
// end.
func (p *pool) wait() (f func(), again bool) {
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > maxIdle {
		return nil, false
	}
	select {
	case f = <-p.next:
		return f, true
	case <-p.leave:
		return nil, false
	}
}

// close ends the goroutines that have nothing to run.
func (p *pool) close() { close(p.leave) }
