package jobs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// awaitedEvery is how often a process with waiting clients says so, and
	// awaitedFor how long the others believe it.
	awaitedEvery = 10 * time.Second
	awaitedFor   = 3 * awaitedEvery
	// lookPause is the least time between two looks for ended jobs.
	lookPause = 2 * time.Millisecond
	// lookTimeout bounds one such look.
	lookTimeout = 5 * time.Second
)

// waiters are callers that wait for jobs to end. However many they are, one loop
// asks the database for all of them: when this process has ended one of their jobs,
// when another process hints that it has ended some, and at every poll.
//
// Processes send that hint only while another one waits: a process with waiters says
// so every awaitedEvery. One that has just begun to hear hints may have missed that, and sends
// it for a while unless it knows of no other process. One that only polls always sends it.
type waiters struct {
	store Store
	cfg   Config
	hints *Hints
	look  loop.Signal // there is something to ask the database for

	mu      sync.Mutex
	waiting map[job.ID]map[chan job.View]struct{}
	// ended holds the waited-for jobs that have ended for certain; all says
	// that any may have.
	ended map[job.ID]struct{}
	all   bool
	// awaitedUntil is how long other processes are told of jobs that end, and supposedUntil how long
	// they are told if there are any.
	awaitedUntil, supposedUntil time.Time
	// saidAt is when we last said that we have waiters.
	saidAt time.Time
}

func newWaiters(store Store, cfg Config, hints *Hints) *waiters {
	return &waiters{
		store: store, cfg: cfg, hints: hints, look: loop.NewSignal(),
		waiting: make(map[job.ID]map[chan job.View]struct{}), ended: make(map[job.ID]struct{}),
	}
}

func (w *waiters) await(ctx context.Context, id job.ID) (job.View, error) {
	done := w.enter(id)
	defer w.leave(id, done)
	// Only now: if the job ends after this look, we are found among the waiters.
	view, err := w.store.Get(ctx, id)
	if err == nil && !view.State.Final() {
		select {
		case view := <-done:
			return view, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return view, err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	return w.store.Get(late, id)
}

func (w *waiters) enter(id job.ID) chan job.View {
	done := make(chan job.View, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[id] == nil {
		w.waiting[id] = make(map[chan job.View]struct{})
	}
	w.waiting[id][done] = struct{}{}
	if time.Since(w.saidAt) >= awaitedEvery {
		w.saidAt = time.Now()
		w.hints.Send(job.JobsAwaited)
	}
	return done
}

func (w *waiters) leave(id job.ID, done chan job.View) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting[id], done)
	if len(w.waiting[id]) == 0 {
		delete(w.waiting, id)
	}
}

// jobEnded says that a job has reached a final state, in this process.
func (w *waiters) jobEnded(id job.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting[id]) > 0 {
		w.ended[id] = struct{}{}
		w.look.Raise()
	}
	if w.othersWait(time.Now()) {
		w.hints.Send(job.JobsEnded)
	}
}

// othersWait says whether other processes may have waiters. It is called with the mutex held.
func (w *waiters) othersWait(now time.Time) bool {
	return w.cfg.PollOnly || now.Before(w.awaitedUntil) || now.Before(w.supposedUntil) && !w.hints.pace.Alone()
}

// othersEnded says that jobs have ended in another process.
func (w *waiters) othersEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
	w.look.Raise()
}

// awaited says that another process has waiters. The first time, that process is also told
// of jobs that ended before.
func (w *waiters) awaited() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !now.Before(w.awaitedUntil) {
		w.hints.Send(job.JobsEnded)
	}
	w.awaitedUntil = now.Add(awaitedFor)
}

// missed says that others may have waiters, and that we have not heard it.
func (w *waiters) missed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.supposedUntil = time.Now().Add(awaitedFor)
	if w.othersWait(time.Now()) {
		w.hints.Send(job.JobsEnded)
	}
}

func (w *waiters) run(ctx context.Context) {
	poll := time.NewTimer(loop.Jittered(w.cfg.PollInterval)) // however much happens meanwhile
	defer poll.Stop()
	for {
		select {
		case <-w.look:
		case <-w.hints.Heard(job.JobsEnded):
			w.othersEnded()
		case <-w.hints.Heard(job.JobsAwaited):
			w.awaited()
			continue
		case <-w.hints.missed:
			w.missed()
			continue
		case <-poll.C:
			w.poll()
			poll.Reset(loop.Jittered(w.cfg.PollInterval))
		case <-ctx.Done():
			return
		}
		if err := w.deliver(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn("ended jobs could not be read; trying again", slog.Any("error", err))
			w.othersEnded()
			loop.Pause(ctx, loop.Jittered(time.Second))
		}
		loop.Pause(ctx, lookPause)
	}
}

// poll makes the next look ask for every job, and repeats that we have waiters.
func (w *waiters) poll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = true
	if len(w.waiting) > 0 && time.Since(w.saidAt) >= awaitedEvery {
		w.saidAt = time.Now()
		w.hints.Send(job.JobsAwaited)
	}
}

// deliver hands the jobs that have ended to those who wait for them.
func (w *waiters) deliver(ctx context.Context) error {
	ids := w.toAsk()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	views, err := w.store.Ended(ctx, ids)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, view := range views {
		for done := range w.waiting[view.ID] {
			select {
			case done <- view:
			default: // it has an answer already, and is about to leave
			}
		}
	}
	return nil
}

// toAsk takes the jobs to ask the database for.
func (w *waiters) toAsk() []job.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := slices.Collect(maps.Keys(w.ended))
	if w.all {
		ids = slices.Collect(maps.Keys(w.waiting))
	}
	clear(w.ended)
	w.all = false
	return ids
}
