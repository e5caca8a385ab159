package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// instance is one process of a generation, and its slots. The fleet's lock guards its
// fields.
type instance struct {
	*connection.Process
	gen *generation
	// isolated says that the process is for one attempt.
	isolated bool

	capacity int
	inFlight int
	// limitOf holds the limit for each process of the job types that have one, and
	// takenOf how many attempts at those types the process has. limitOf never changes.
	limitOf, takenOf map[string]int

	// lost says that the process takes no more attempts, and lostAs is the role of its
	// generation at that moment.
	lost   bool
	lostAs role
	// warmSince is when its first attempt succeeded; zero before.
	warmSince time.Time
	// excused says that its death did not end the trial of its generation.
	excused bool
}

var _ connection.Owner = (*instance)(nil)

// launch starts a process of the generation.
func (g *generation) launch(ctx context.Context, isolated bool) (*instance, error) {
	child, err := g.childSpec()
	if err != nil {
		return nil, err
	}
	i := &instance{gen: g, isolated: isolated}
	i.Process, err = connection.Launch(ctx, connection.Spec{
		Plugin: g.config.Name, Child: child, SocketDir: g.fleet.host.home.Path, Isolated: isolated,
		StartTimeout: g.fleet.configured().StartTimeout, Settings: g.settings.Settings, Log: g.log, Draining: g.draining, Killing: g.killing,
	}, i)
	if err != nil {
		return nil, err
	}
	i.capacity = g.config.capacity(i.Manifest)
	if i.limitOf = typeLimits(i.Manifest); i.limitOf != nil {
		i.takenOf = make(map[string]int)
	}
	return i, nil
}

// typeLimits returns the limit for each process of the job types that have one; nil if
// none has.
func typeLimits(m *message.Manifest) map[string]int {
	var limits map[string]int
	for _, spec := range m.Specs {
		if spec.Concurrency > 0 {
			if limits == nil {
				limits = make(map[string]int)
			}
			limits[spec.Type] = spec.Concurrency
		}
	}
	return limits
}

func (i *instance) hasRoom(jobType string) bool {
	limit := i.limitOf[jobType]
	return i.inFlight < i.capacity && (limit == 0 || i.takenOf[jobType] < limit)
}

// take adds n attempts of the type, or frees their slots if n is negative.
func (i *instance) take(jobType string, n int) {
	i.inFlight += n
	if i.limitOf[jobType] > 0 {
		i.takenOf[jobType] += n
	}
}

// addRoom adds the room of the process to the pool.
func (i *instance) addRoom(pool *job.Pool) {
	free := i.capacity - i.inFlight
	pool.Free += free
	pool.Slots += i.capacity
	for jobType, limit := range i.limitOf {
		if pool.Room == nil {
			pool.Room = make(map[string]int)
		}
		pool.Room[jobType] += min(free, limit-i.takenOf[jobType])
	}
}

// Adopt implements connection.Owner.
func (i *instance) Adopt(ctx context.Context, m *message.Manifest) (*message.Manifest, error) {
	m = m.Without(i.gen.fleet.configured().skips)
	return m, i.gen.fleet.host.adopt(ctx, i.gen, m)
}

// Leaving implements connection.Owner.
func (i *instance) Leaving() {
	i.gen.fleet.mu.Lock()
	i.leaveLocked()
	i.gen.fleet.mu.Unlock()
	i.gen.signal()
}

func (i *instance) leaveLocked() {
	g := i.gen
	g.live = slices.DeleteFunc(g.live, func(other *instance) bool { return other == i })
	if !i.lost {
		i.lost, i.lostAs = true, g.role
	}
}

// Lost implements connection.Owner. Under the same lock it decides what the loss means for
// a candidate, so that a candidate is not promoted while one of its processes is dying.
func (i *instance) Lost(cause error) {
	g, f := i.gen, i.gen.fleet
	f.mu.Lock()
	i.leaveLocked()
	crashed := cause != nil && !errors.Is(cause, connection.ErrClosing) && !errors.Is(cause, connection.ErrKilled)
	if g.role == candidate && crashed && g.fault == nil {
		if i.excused = f.excuses(g); i.excused {
			g.trial.Add(true)
		} else {
			g.fault = fmt.Errorf("pid %d: %w", i.PID(), cause)
		}
	}
	f.mu.Unlock()
	g.signal()
}

// Settle implements connection.Owner. It frees the slots of the attempts, and decides
// what their outcomes mean for the generation.
func (i *instance) Settle(ended []connection.Ended) {
	f, now := i.gen.fleet, time.Now()
	f.mu.Lock()
	for n := range ended {
		e := &ended[n]
		i.take(e.JobType, -1)
		if e.Outcome.Kind == job.Success {
			i.recordDuration(e.Attempt, now)
		}
		e.Outcome = i.judge(e.Outcome)
	}
	f.mu.Unlock()
	f.host.changed.Raise()
}

// judge counts an outcome. A failure in a candidate may be the version's fault. It is
// not charged to the job, and the serving version runs the job again.
func (i *instance) judge(outcome job.Outcome) job.Outcome {
	failed := false
	switch outcome.Kind {
	case job.Failure, job.PermanentFailure, job.Timeout, job.Crash:
		failed = true
	case job.Success, job.Snoozed:
	default:
		return outcome
	}
	i.gen.lifetime.Add(failed)
	if !i.excused {
		i.gen.trial.Add(failed)
	}
	if !failed || i.chargesJobs() {
		return outcome
	}
	return message.OnTrial(i.gen.version(), outcome)
}

// chargesJobs reports whether a failure in the process is the job's, and not the
// version's. A death in a candidate is the version's, even if the candidate is
// promoted before the death is reported.
func (i *instance) chargesJobs() bool {
	switch {
	case i.excused:
		return i.gen.role != rejected
	case i.lost && i.lostAs == candidate:
		return false
	}
	return i.gen.role == serving || i.gen.role == retired
}

// recordDuration records how long a successful attempt took. It leaves out attempts
// that began while the process was new, which may have waited for one-time loading.
func (i *instance) recordDuration(a *connection.Attempt, ended time.Time) {
	switch {
	case i.isolated: // Attempts that share a process are not comparable with it.
	case i.warmSince.IsZero():
		i.warmSince = ended
	case i.wasWarm(a.Begun):
		i.gen.durations.Add(a.JobType, ended.Sub(a.Begun))
	}
}

// wasWarm reports whether another attempt in the process had succeeded by that time.
func (i *instance) wasWarm(begun time.Time) bool {
	return !i.warmSince.IsZero() && begun.After(i.warmSince)
}

// running describes the attempts in the process. If all is set, even attempts that
// began while the process was new can count as slow.
func (i *instance) running(now time.Time, all bool) []trial.Running {
	var running []trial.Running
	i.Each(func(jobType string, begun time.Time) {
		running = append(running, trial.Running{JobType: jobType, For: now.Sub(begun), Early: !all && !i.wasWarm(begun)})
	})
	return running
}
