package jobs

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// together is how many processes do the same without regard to one another.
	together = 2
	// mostStretch bounds how many times as long a pause becomes on average, and with it how
	// long what no hint announced goes unnoticed if nearly all processes have just ended.
	mostStretch = 50
	// turnEach is how long after a hint another process of a crowd looks, on average.
	turnEach = 40 * time.Millisecond
)

// Pace is how often this process looks for what any of several processes can do: the more there
// are, the less often each of them looks, so that all of more than two look as often as one would.
// It does so only while it hears hints.
//
// Whoever looks first finds the work, so each pause is drawn at random: processes that were
// woken together do not stay together.
type Pace struct {
	poll time.Duration
	// hearing says that hints are heard.
	hearing                   atomic.Bool
	workers, maintainers, all atomic.Int64
}

// Know says how many processes there are that can do the same.
func (p *Pace) Know(crowd job.Crowd) {
	p.workers.Store(int64(crowd.Workers))
	p.maintainers.Store(int64(crowd.Maintainers))
	p.all.Store(int64(crowd.All))
}

// Poll is how long a loop waits until it looks for what no hint announced: PollInterval, give or
// take a tenth, or longer in a crowd of processes with the role. With the API's role it is
// for loops that every process has.
func (p *Pace) Poll(of job.Role) time.Duration { return p.Pause(of, p.poll) }

// Pause is Poll for a loop with another period.
func (p *Pace) Pause(of job.Role, period time.Duration) time.Duration {
	crowd := p.crowd(of)
	if crowd <= together {
		return loop.Jittered(period)
	}
	stretch := min(float64(crowd), mostStretch)
	return period + time.Duration(rand.Float64()*2*(stretch-1)*float64(period))
}

// Stretched is how long to wait between two looks that each process must take for itself: the
// period, give or take a tenth, or in a crowd up to so many times as long.
func (p *Pace) Stretched(of job.Role, period time.Duration, most float64) time.Duration {
	stretch := min(max(float64(p.crowd(of))/together, 1), most)
	return loop.Jittered(time.Duration(stretch * float64(period)))
}

// Longest is the longest pause of any process with the period.
func (p *Pace) Longest(period time.Duration) time.Duration { return (2*mostStretch - 1) * period }

// Turn is how long to wait before doing what a crowd would do at the same moment, as acting on a
// hint that one process is enough for. Two of them act at once, on average. The others follow one
// after the other, in case these cannot: the last one within twice PollInterval.
func (p *Pace) Turn(of job.Role) time.Duration { return p.TurnWithin(of, 2*p.poll) }

// TurnWithin is Turn, the last one within the time given.
func (p *Pace) TurnWithin(of job.Role, most time.Duration) time.Duration {
	crowd := p.crowd(of)
	if crowd <= together || rand.Float64() < together/float64(crowd) {
		return 0
	}
	return rand.N(min(time.Duration(crowd)*turnEach, most)) + 1
}

// Alone says that this process knew of no other when it last looked. It does not count those that
// are drained, and is false if the look failed.
func (p *Pace) Alone() bool { return p.all.Load() == 1 }

// crowded says that processes of any role take turns.
func (p *Pace) crowded() bool { return p.crowd(job.RoleAPI) > together }

// crowd is how many processes of a role to make room for.
func (p *Pace) crowd(of job.Role) int64 {
	switch {
	case !p.hearing.Load():
		return 1
	case of == job.RoleWorker:
		return p.workers.Load()
	case of == job.RoleMaintenance:
		return p.maintainers.Load()
	default: // what processes of any role do
		return p.all.Load()
	}
}

// shared are the hints that one process is enough for, with the role that acts on them.
var shared = map[job.Hint]job.Role{
	job.JobsReady:        job.RoleWorker,
	job.GatesChanged:     job.RoleMaintenance,
	job.FollowedEnded:    job.RoleMaintenance,
	job.TimersSet:        job.RoleMaintenance,
	job.MaintenanceAsked: job.RoleMaintenance,
}

// turns are hints that this process acts on later. One goroutine calls its methods.
type turns map[job.Hint]*turn

type turn struct {
	timer *time.Timer
	at    time.Time
	about *TypedSignal
}

// take raises the signal after the wait. Hints that follow one that waits join it; one that does
// not wait stands for it, unless it is about some job types only.
func (t turns) take(n job.Notice, wait time.Duration, heard *TypedSignal) {
	waiting := t[n.Hint]
	waits := waiting != nil && time.Now().Before(waiting.at)
	switch {
	case wait > 0 && waits:
		waiting.about.Raise(n.Types)
		if !time.Now().Before(waiting.at) {
			heard.Raise(n.Types) // it may have been raised just before
		}
	case wait > 0:
		next := &turn{at: time.Now().Add(wait), about: NewTypedSignal()} // not later than the timer is
		next.about.Raise(n.Types)
		next.timer = time.AfterFunc(wait, func() { heard.Raise(next.about.Take()) })
		t[n.Hint] = next
	case n.Types == nil && waits:
		waiting.timer.Stop()
		delete(t, n.Hint)
		heard.Raise(nil)
	default:
		heard.Raise(n.Types)
	}
}

// end forgets them.
func (t turns) end() {
	for _, waiting := range t {
		waiting.timer.Stop()
	}
}
