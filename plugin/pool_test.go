package plugin

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
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
		require.EqualValues(t, maxIdle, p.waiting.Load())
		p.close()
		group.Wait()
		require.Zero(t, p.waiting.Load())
	})
}

func TestADismissedCrewStillRuns(t *testing.T) {
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
		require.Zero(t, p.waiting.Load())
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
