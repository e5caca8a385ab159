package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Bounds of the wait of a job for which no process of its own came up.
const (
	minLaunchDelay = time.Second
	maxLaunchDelay = time.Minute
)

// launches says how long a job waits for which no process of its own came up. A
// plugin that cannot be launched would otherwise be asked at once again, for ever,
// with a row of history each time. The wait doubles with each failure in a row of
// the plugin.
type launches struct {
	mu sync.Mutex
	// delay is the last wait, by plugin.
	delay map[string]time.Duration
}

func newLaunches() *launches { return &launches{delay: make(map[string]time.Duration)} }

// failed counts a launch that has failed, and returns how long its job is to wait.
func (l *launches) failed(plugin string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay[plugin] = min(max(2*l.delay[plugin], minLaunchDelay), maxLaunchDelay)
	return l.delay[plugin]
}

// succeeded forgets the failures.
func (l *launches) succeeded(plugin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.delay, plugin)
}

// delayed is the outcome of an attempt that was to run alone, with a wait when no
// process came up for it. One that was stopped meanwhile is given back as it is:
// others may have more luck.
func (l *launches) delayed(plugin string, outcome job.Outcome, stopped bool) job.Outcome {
	switch {
	case outcome.Code != job.CodeNoProcess:
		l.succeeded(plugin)
	case outcome.Kind == job.Released && outcome.RetryAfter == nil && !stopped:
		outcome.RetryAfter = new(jittered(l.failed(plugin)))
	}
	return outcome
}
