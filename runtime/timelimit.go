package runtime

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// timeLimits asks handlers to stop whose time is over. Most end before that, so their timers
// are used again.
type timeLimits struct{ unused sync.Pool }

// timeLimit is the timer of one attempt.
type timeLimit struct {
	timer *time.Timer
	of    *attempt
}

// start asks the attempt to stop after that time, unless the limit ends before.
func (t *timeLimits) start(a *attempt, after time.Duration) *timeLimit {
	l, used := t.unused.Get().(*timeLimit)
	if !used {
		l = new(timeLimit)
	}
	l.of = a
	if used {
		l.timer.Reset(after)
	} else {
		l.timer = time.AfterFunc(after, l.passed)
	}
	return l
}

func (l *timeLimit) passed() { l.of.stop(job.CancelTimeout) }

// end ends the limit. It may have passed at the same moment: then it still belongs to its
// attempt.
func (t *timeLimits) end(l *timeLimit) {
	if l.timer.Stop() {
		l.of = nil
		t.unused.Put(l)
	}
}
