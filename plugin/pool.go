package plugin

import (
	"context"
	"runtime/pprof"
	"slices"
	"sync"
)

// maxIdle bounds the goroutines of a pool that wait for something to do. A message can start
// hundreds of attempts.
const maxIdle = 1000

// task is what a pool runs.
type task interface{ run() }

// pool runs tasks. A goroutine that takes a task wakes or starts one more if others still wait, and
// then runs its task; so none waits until another one is done. Short tasks are done before that
// goroutine is there, by those that have just run others: to wake one for each took a third of what a
// short job costs its process. At most one goroutine is on its way at a time, so where all processors
// are busy, each start waits for a turn of the scheduler.
type pool struct {
	mu      sync.Mutex
	wanted  sync.Cond
	waiting int // goroutines that have nothing to run
	tasks   []task
	taken   int // tasks that were taken already; all of them if none waits
	// coming says that a goroutine was woken or started, and has not looked for a task yet.
	coming bool
	closed bool
}

func newPool() *pool {
	p := new(pool)
	p.wanted.L = &p.mu
	return p
}

// run runs t at once. The group counts the goroutines until the pool is closed.
func (p *pool) run(group *sync.WaitGroup, t task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken > len(p.tasks)/2 {
		p.tasks, p.taken = slices.Delete(p.tasks, 0, p.taken), 0
	}
	p.tasks = append(p.tasks, t)
	p.send(group)
}

// send has a goroutine come, unless one is coming. It is called with the mutex held.
func (p *pool) send(group *sync.WaitGroup) {
	switch {
	case p.coming:
		return
	case p.waiting > 0:
		p.wanted.Signal()
	default:
		group.Go(func() { p.serve(group) })
	}
	p.coming = true
}

// serve runs tasks, on a new goroutine.
func (p *pool) serve(group *sync.WaitGroup) {
	for t := p.take(group, true); t != nil; t = p.take(group, false) {
		t.run()
		pprof.SetGoroutineLabels(context.Background()) // it may have left some
	}
}

// take waits for a task, and returns nil when the goroutine should end. A new one arrives with its
// first call.
func (p *pool) take(group *sync.WaitGroup, arrives bool) task {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coming = p.coming && !arrives
	for p.taken == len(p.tasks) {
		if p.closed || p.waiting == maxIdle {
			return nil
		}
		p.waiting++
		p.wanted.Wait()
		p.waiting--
		p.coming = false
	}
	t := p.tasks[p.taken]
	p.tasks[p.taken] = nil
	if p.taken++; p.taken < len(p.tasks) {
		p.send(group)
	} else {
		p.tasks, p.taken = p.tasks[:0], 0
	}
	return t
}

// close ends the goroutines that have nothing to run.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wanted.Broadcast()
}
