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

// goroutine tells one goroutine from another.
func goroutine() string {
	var head [32]byte // "goroutine 17 [running]: …"
	return string(head[:runtime.Stack(head[:], false)])
}

func TestACrewRunsOneAfterAnotherOnOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		c := newCrew()
		var on []string
		for range 3 {
			c.run(&group, func() { on = append(on, goroutine()) })
			synctest.Wait()
		}
		require.Len(t, on, 3)
		require.Equal(t, on[0], on[1])
		require.Equal(t, on[0], on[2])
		c.dismiss()
		group.Wait()
	})
}

func TestACrewRunsAllAtOnceAndKeepsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		c := newCrew()
		release := make(chan struct{})
		running := 0
		var mu sync.Mutex
		for range 3 * maxIdle {
			c.run(&group, func() {
				mu.Lock()
				running++
				mu.Unlock()
				<-release
			})
		}
		synctest.Wait()
		require.Equal(t, 3*maxIdle, running)
		close(release)
		synctest.Wait()
		require.EqualValues(t, maxIdle, c.waiting.Load())
		c.dismiss()
		group.Wait()
		require.Zero(t, c.waiting.Load())
	})
}

func TestADismissedCrewStillRuns(t *testing.T) {
	var group sync.WaitGroup
	c := newCrew()
	c.dismiss()
	ran := false
	c.run(&group, func() { ran = true })
	group.Wait()
	require.True(t, ran)
}

// A function that ends its own goroutine takes nothing else with it.
func TestACrewOutlivesAGoroutineThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		c := newCrew()
		c.run(&group, runtime.Goexit)
		synctest.Wait()
		require.Zero(t, c.waiting.Load())
		ran := false
		c.run(&group, func() { ran = true })
		synctest.Wait()
		require.True(t, ran)
		c.dismiss()
		group.Wait()
	})
}

func TestTheLabelsOfAGoroutineAreNotTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		c := newCrew()
		c.run(&group, func() {
			pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("canary", "left")))
		})
		synctest.Wait()
		inside := make(chan struct{})
		c.run(&group, func() { <-inside })
		synctest.Wait()
		var all bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
		require.NotContains(t, all.String(), "canary")
		close(inside)
		c.dismiss()
		group.Wait()
	})
}
