package plugin

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// function is a task.
type function func()

func (f function) run() { f() }

// goroutine tells one goroutine from another.
func goroutine() string {
	var head [32]byte // "goroutine 17 [running]: …"
	return string(head[:runtime.Stack(head[:], false)])
}

func (p *pool) idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

func TestAPoolRunsOneAfterAnotherOnOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		p := newPool()
		var on []string
		for range 3 {
			p.run(&group, function(func() { on = append(on, goroutine()) }))
			synctest.Wait()
		}
		require.Len(t, on, 3)
		require.Equal(t, on[0], on[1])
		require.Equal(t, on[0], on[2])
		p.close()
		group.Wait()
	})
}

func TestAPoolRunsAllAtOnceAndKeepsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		p := newPool()
		release := make(chan struct{})
		running := 0
		var mu sync.Mutex
		for range 3 * maxIdle {
			p.run(&group, function(func() {
				mu.Lock()
				running++
				mu.Unlock()
				<-release
			}))
		}
		synctest.Wait()
		require.Equal(t, 3*maxIdle, running)
		close(release)
		synctest.Wait()
		require.Equal(t, maxIdle, p.idle())
		p.close()
		group.Wait()
		require.Zero(t, p.idle())
	})
}

func TestAPoolThatIsClosedStillRuns(t *testing.T) {
	var group sync.WaitGroup
	p := newPool()
	p.close()
	ran := false
	p.run(&group, function(func() { ran = true }))
	group.Wait()
	require.True(t, ran)
}

// A function that ends its own goroutine takes nothing else with it.
func TestAPoolOutlivesAGoroutineThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		p := newPool()
		p.run(&group, function(runtime.Goexit))
		synctest.Wait()
		require.Zero(t, p.idle())
		ran := false
		p.run(&group, function(func() { ran = true }))
		synctest.Wait()
		require.True(t, ran)
		p.close()
		group.Wait()
	})
}

func TestTheLabelsOfAGoroutineAreNotTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		p := newPool()
		p.run(&group, function(func() {
			pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("canary", "left")))
		}))
		synctest.Wait()
		inside := make(chan struct{})
		p.run(&group, function(func() { <-inside }))
		synctest.Wait()
		var all bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
		require.NotContains(t, all.String(), "canary")
		close(inside)
		p.close()
		group.Wait()
	})
}

// Each task waits until all of them run, and some end their goroutine, so that no wake-up may be lost.
func TestNoTaskWaitsUntilAnotherOneIsDone(t *testing.T) {
	for _, processors := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		var group sync.WaitGroup
		p := newPool()
		for round := range 10 {
			const tasks = 3 * maxIdle
			var all sync.WaitGroup
			all.Add(tasks)
			for i := range tasks {
				p.run(&group, function(func() {
					all.Done()
					all.Wait()
					if i%3 == round%3 {
						runtime.Goexit()
					}
				}))
			}
			all.Wait()
		}
		p.close()
		group.Wait()
		require.Zero(t, p.idle())
	}
}

func TestWhatWaitsWhenAPoolIsClosedIsRun(t *testing.T) {
	var group sync.WaitGroup
	var ran atomic.Int32
	p := newPool()
	for i := range 100 {
		p.run(&group, function(func() { ran.Add(1) }))
		if i == 50 {
			p.close()
		}
	}
	group.Wait()
	require.EqualValues(t, 100, ran.Load())
}
