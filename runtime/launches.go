package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Bounds of the wait of an isolated job for which no process came up.
const (
	minLaunchDelay = time.Second
	maxLaunchDelay = time.Minute
)

// launches decides how long an isolated job waits after no process came up for it.
// Otherwise a plugin that cannot be launched would be tried again at once, forever, with
// a row of history each time. The wait doubles with each failure in a row of the
// plugin.
type launches struct {
	mu sync.Mutex
	// delay is the last wait, by plugin.
	delay map[string]time.Duration
}

func newLaunches() *launches { return &launches{delay: make(map[string]time.Duration)} }

// failed counts a failed launch, and returns how long its job has to wait.
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

// delayed returns the outcome of an isolated attempt, with a wait when no process came
// up for it. One that was stopped meanwhile has no wait: another worker may succeed.
func (l *launches) delayed(plugin string, outcome job.Outcome, stopped bool) job.Outcome {
	switch {
	case outcome.Code != job.CodeNoProcess:
		l.succeeded(plugin)
	case outcome.Kind == job.Released && outcome.RetryAfter == nil && !stopped:
		outcome.RetryAfter = new(loop.Jittered(l.failed(plugin)))
	}
	return outcome
}
