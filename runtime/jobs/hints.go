package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// hintInterval is the least time between two hints of a kind. A commit that
	// notifies takes a lock that all such commits of the server share.
	hintInterval = 5 * time.Millisecond
	// hintTimeout bounds the sending of one.
	hintTimeout = time.Second
	// The pause before a lost listening connection is opened again, or a hint that could not
	// be sent is sent again, doubles from againFirst to againMost.
	againFirst = 100 * time.Millisecond
	againMost  = 10 * time.Second
)

// Hints announce that there is something to do, to this process and to others.
// Losing one costs time, never a job.
type Hints struct {
	store   Store
	log     *slog.Logger
	metrics *metrics.Metrics
	pace    *Pace
	out, in map[job.Hint]loop.Signal
}

func newHints(store Store, log *slog.Logger, m *metrics.Metrics, pace *Pace) *Hints {
	h := &Hints{store: store, log: log, metrics: m, pace: pace, out: make(map[job.Hint]loop.Signal), in: make(map[job.Hint]loop.Signal)}
	for _, hint := range job.Hints() {
		h.out[hint], h.in[hint] = loop.NewSignal(), loop.NewSignal()
	}
	return h
}

// Heard is the signal of the one loop in this process that acts on the hint.
func (h *Hints) Heard(hint job.Hint) loop.Signal { return h.in[hint] }

// Announce passes a hint to this process at once, and soon to the others. It does
// not wait.
func (h *Hints) Announce(hint job.Hint) {
	h.in[hint].Raise()
	h.Send(hint)
}

// Send passes a hint to other processes, soon and without waiting. Hints of a kind
// that follow each other closely are sent as one.
func (h *Hints) Send(hint job.Hint) { h.out[hint].Raise() }

func (h *Hints) run(ctx context.Context) {
	var loops sync.WaitGroup
	for hint, due := range h.out {
		loops.Go(func() {
			pause := againFirst
			for {
				select {
				case <-due:
				case <-ctx.Done():
					return
				}
				switch err := h.pass(ctx, hint); {
				case err == nil:
					pause = againFirst
					loop.Pause(ctx, hintInterval)
				case ctx.Err() != nil:
					due.Raise() // for Flush
				default:
					h.log.Debug("hint not sent; others poll until it is", slog.String("hint", string(hint)), slog.Any("error", err))
					due.Raise()
					loop.Pause(ctx, loop.Jittered(pause))
					pause = min(2*pause, againMost)
				}
			}
		})
	}
	loops.Wait()
}

func (h *Hints) pass(ctx context.Context, hint job.Hint) error {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	err := h.store.Send(ctx, hint)
	h.metrics.HintSent(hint, err)
	return err
}

// Flush sends the hints that wait to be sent. It is for a process that ends; call
// it when Run has returned.
func (h *Hints) Flush(ctx context.Context) {
	for hint, due := range h.out {
		select {
		case <-due:
			_ = h.pass(ctx, hint)
		default:
		}
	}
}

// listen hears the hints of all processes. While it cannot, everything is found by
// polling. Once it can again, every loop looks for what it has missed.
func (h *Hints) listen(ctx context.Context) {
	pause := againFirst
	waiting := make(turns)
	defer waiting.end()
	for ctx.Err() == nil {
		err := h.store.Listen(ctx, func() {
			pause = againFirst
			h.pace.hearing.Store(true)
			for _, heard := range h.in {
				heard.Raise()
			}
		}, func(hint job.Hint) {
			if heard, known := h.in[hint]; known {
				h.metrics.HintHeard(hint)
				waiting.take(hint, h.turn(hint), heard)
			}
		})
		h.pace.hearing.Store(false)
		if ctx.Err() != nil {
			return
		}
		h.metrics.Failed(metrics.OpHint, err)
		h.log.Warn("listening for hints failed; polling until it works again", slog.Any("error", err))
		loop.Pause(ctx, loop.Jittered(pause))
		pause = min(2*pause, againMost)
	}
}

// turn is how long this process waits before it acts on a hint.
func (h *Hints) turn(hint job.Hint) time.Duration {
	if role, oneIsEnough := shared[hint]; oneIsEnough {
		return h.pace.Turn(role)
	}
	return 0
}
