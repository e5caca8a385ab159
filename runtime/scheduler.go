package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// promoteBatch bounds one move of due jobs to the ready list.
const promoteBatch = 500

// scheduler moves jobs to the ready list when they are due. It runs in every
// orchestrator.
type scheduler struct {
	store    Store
	log      *slog.Logger
	cfg      Config
	promoted func() // jobs were put on the ready list
	sooner   signal // something is due before the scheduler would wake

	telemetry *telemetry

	mu   sync.Mutex
	next time.Time // when the scheduler will look again; far off while it looks
}

// dueIn says that a job will be due after the time.
func (s *scheduler) dueIn(after time.Duration) {
	s.mu.Lock()
	earlier := time.Now().Add(after).Before(s.next)
	s.mu.Unlock()
	if earlier {
		s.sooner.raise()
	}
}

func (s *scheduler) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.looksAgain(time.Hour)
		pause, err := s.promote(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("promoting due jobs failed; trying again", slog.Any("error", err))
			pause = jittered(time.Second)
		}
		s.looksAgain(pause)
		s.sooner.wait(ctx, pause)
	}
}

func (s *scheduler) looksAgain(in time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Now().Add(in)
}

// promote moves what is due and returns how long to wait for the next: never
// longer than a poll, since other processes schedule jobs too.
func (s *scheduler) promote(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		began := time.Now()
		moved, err := s.store.Promote(ctx, promoteBatch)
		s.telemetry.batch(opPromote, moved, began, err)
		if err != nil {
			return 0, err
		}
		if moved > 0 {
			s.promoted()
		}
		if moved < promoteBatch {
			break
		}
	}
	due, scheduled, err := s.store.NextDue(ctx)
	if err != nil {
		return 0, err
	}
	poll := jittered(s.cfg.PollInterval)
	if scheduled && due < poll {
		return max(due, time.Millisecond), nil
	}
	return poll, nil
}
