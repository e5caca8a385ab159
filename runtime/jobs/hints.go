package jobs

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
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
	out, in map[job.Hint]*TypedSignal
	// self names this process in hints that are for others alone.
	self string
	// missed is raised when hints are heard (again): some may have been missed.
	missed loop.Signal
	// offers are types with ready jobs that this process alone was told of, while it claims.
	offers *TypedSignal
	claims atomic.Bool
}

func newHints(store Store, log *slog.Logger, m *metrics.Metrics, pace *Pace) *Hints {
	h := &Hints{store: store, log: log, metrics: m, pace: pace, self: rand.Text(), missed: loop.NewSignal(), offers: NewTypedSignal()}
	h.out, h.in = make(map[job.Hint]*TypedSignal), make(map[job.Hint]*TypedSignal)
	for _, hint := range job.Hints() {
		h.out[hint], h.in[hint] = NewTypedSignal(), NewTypedSignal()
	}
	return h
}

// Heard is the signal of the one loop in this process that acts on the hint, whatever the job
// types.
func (h *Hints) Heard(hint job.Hint) loop.Signal { return h.in[hint].Woken() }

// Ready is the signal of the one loop in this process that claims ready jobs, about those that
// others have left, or that were not offered.
func (h *Hints) Ready() *TypedSignal { return h.in[job.JobsReady] }

// Announce passes a hint to this process at once, and soon to the others. It does
// not wait.
func (h *Hints) Announce(hint job.Hint) {
	h.in[hint].Raise(nil)
	h.Send(hint)
}

// Offer announces ready jobs of the types to the loop that claims in this process, which passes
// on what it leaves. Without such a loop, others are told soon.
func (h *Hints) Offer(types []string) {
	h.offers.Raise(types)
	if !h.claims.Load() {
		h.Pass(h.offers.Take())
	}
}

// Offers is what was offered to this process alone, for the loop that claims in it: after it
// has claimed, that loop must Pass on the types of which it may have left jobs. It must
// call Offers before it begins, and EndOffers when it ends.
func (h *Hints) Offers() *TypedSignal {
	h.claims.Store(true)
	return h.offers
}

// EndOffers passes on what this process does not claim any more.
func (h *Hints) EndOffers() {
	h.claims.Store(false)
	h.Pass(h.offers.Take())
}

// Pass tells other processes, soon and without waiting, that there may be ready jobs of the
// types. Empty means of none, nil of any.
func (h *Hints) Pass(types []string) {
	if types == nil || len(types) > 0 {
		h.out[job.JobsReady].Raise(types)
	}
}

// Send passes a hint to other processes, soon and without waiting. Hints of a kind
// that follow each other closely are sent as one.
func (h *Hints) Send(hint job.Hint) { h.out[hint].Raise(nil) }

func (h *Hints) run(ctx context.Context) {
	var loops sync.WaitGroup
	for hint, due := range h.out {
		loops.Go(func() {
			pause := againFirst
			for {
				select {
				case <-due.Woken():
				case <-ctx.Done():
					return
				}
				notice := h.notice(hint, due.Take())
				switch err := h.pass(ctx, notice); {
				case err == nil:
					pause = againFirst
					loop.Pause(ctx, hintInterval)
				case ctx.Err() != nil:
					due.Raise(notice.Types) // for Flush
				default:
					h.log.Debug("hint not sent; others poll until it is", slog.String("hint", string(hint)), slog.Any("error", err))
					due.Raise(notice.Types)
					loop.Pause(ctx, loop.Jittered(pause))
					pause = min(2*pause, againMost)
				}
			}
		})
	}
	loops.Wait()
}

// notice is what to send to others. Who waits for jobs and which have ended is nothing that this
// process has to tell itself, and acting on it costs statements.
func (h *Hints) notice(hint job.Hint, types []string) job.Notice {
	n := job.Notice{Hint: hint, Types: types}
	if hint == job.JobsAwaited || hint == job.JobsEnded {
		n.From = h.self
	}
	return n
}

func (h *Hints) pass(ctx context.Context, n job.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	err := h.store.Send(ctx, n)
	h.metrics.HintSent(n.Hint, err)
	return err
}

// Flush sends the hints that wait to be sent. It is for a process that ends; call
// it when Run has returned.
func (h *Hints) Flush(ctx context.Context) {
	for hint, due := range h.out {
		select {
		case <-due.Woken():
			_ = h.pass(ctx, h.notice(hint, due.Take()))
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
			for hint, heard := range h.in {
				if hint != job.JobsAwaited {
					heard.Raise(nil)
				}
			}
			h.missed.Raise()
		}, func(n job.Notice) {
			if heard, known := h.in[n.Hint]; known && n.From != h.self {
				h.metrics.HintHeard(n.Hint)
				waiting.take(n, h.turn(n.Hint), heard)
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
