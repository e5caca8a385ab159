package runtime

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// stoppedFor is why the attempt was asked to stop; empty if it was not.
func stoppedFor(a *attempt) job.CancelReason {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopped
}

func limited(limits *timeLimits, after time.Duration) *attempt {
	a := &attempt{shared: &shared{ends: new(ended)}}
	limits.start(a, time.Now(), after)
	return a
}

func (t *timeLimits) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queues)
}

func TestEachAttemptIsStoppedWhenItsOwnTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := new(timeLimits)
		var want []job.CancelReason
		var all []*attempt
		for i := range 3 {
			all = append(all, limited(limits, time.Minute), limited(limits, time.Hour), limited(limits, time.Minute))
			limits.end(all[3*i+2])
			want = append(want, job.CancelTimeout, "", "")
			time.Sleep(10 * time.Second)
		}
		limits.start(all[0], time.Now(), time.Hour) // it has one already
		stopped := func(at time.Duration) (reasons []job.CancelReason) {
			time.Sleep(at)
			synctest.Wait()
			for _, a := range all {
				reasons = append(reasons, stoppedFor(a))
			}
			return reasons
		}
		require.Equal(t, make([]job.CancelReason, 9), stopped(29*time.Second))
		require.Equal(t, append(want[:3:3], make([]job.CancelReason, 6)...), stopped(time.Second))
		require.Equal(t, want, stopped(20*time.Second))
		for _, one := range []int{1, 4, 7} {
			want[one] = job.CancelTimeout
		}
		require.Equal(t, want, stopped(time.Hour))
		require.Zero(t, limits.count())
	})
}

func TestLimitsThatNobodyHasAnyMoreAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := new(timeLimits)
		for i := range 10 * fewQueues {
			a := limited(limits, time.Hour+time.Duration(i))
			limits.end(a)
			limits.end(a) // it has none any more
		}
		require.Equal(t, fewQueues, limits.count())
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Zero(t, limits.count())
	})
}

// Attempts come and go in any order, and what is left must be found.
func TestAttemptsMayEndInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := new(timeLimits)
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}} {
			for left := range order {
				all := []*attempt{limited(limits, time.Second), limited(limits, time.Second), limited(limits, time.Second)}
				for _, one := range order[:left] {
					limits.end(all[one])
				}
				time.Sleep(time.Second)
				synctest.Wait()
				for i, one := range order {
					require.Equal(t, i >= left, stoppedFor(all[one]) == job.CancelTimeout, "%v, %d of them", order, left)
				}
			}
		}
	})
}
