package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// hintInterval is the least time between two hints on one channel. A commit
// that notifies takes a lock that all such commits of the server share.
const hintInterval = 5 * time.Millisecond

// relisten bounds the pause before a lost listening connection is opened anew.
const (
	relistenFirst = 100 * time.Millisecond
	relistenMost  = 10 * time.Second
)

// hints tell other processes, and us, that there is something to do. Nothing
// depends on them but latency.
type hints struct {
	store Store
	log   *slog.Logger
	out   map[job.Hint]signal
	heard map[job.Hint]func()

	telemetry *telemetry
}

func newHints(store Store, log *slog.Logger, t *telemetry) *hints {
	h := &hints{store: store, log: log, telemetry: t, out: make(map[job.Hint]signal), heard: make(map[job.Hint]func())}
	for _, hint := range job.Hints() {
		h.out[hint] = newSignal()
		h.heard[hint] = func() {}
	}
	return h
}

// send passes a hint on, soon and without waiting; hints that come close upon
// each other are sent as one.
func (h *hints) send(hint job.Hint) { h.out[hint].raise() }

func (h *hints) sendLoop(ctx context.Context, hint job.Hint) {
	for {
		select {
		case <-h.out[hint]:
		case <-ctx.Done():
			return
		}
		try, cancel := context.WithTimeout(ctx, time.Second)
		err := h.store.Send(try, hint)
		cancel()
		h.telemetry.sent(hint, err)
		if err != nil && ctx.Err() == nil {
			h.log.Debug("hint not sent; others will poll", slog.String("hint", string(hint)), slog.Any("error", err))
		}
		pauseFor(ctx, hintInterval)
	}
}

// listenLoop hears the hints of others. While it cannot, everything is found
// by polling. Whatever was missed is looked for once it listens again.
func (h *hints) listenLoop(ctx context.Context) {
	pause := relistenFirst
	for ctx.Err() == nil {
		err := h.store.Listen(ctx, func() {
			pause = relistenFirst
			for _, act := range h.heard {
				act()
			}
		}, func(hint job.Hint) {
			if act, known := h.heard[hint]; known {
				h.telemetry.heard(hint)
				act()
			}
		})
		if ctx.Err() != nil {
			return
		}
		h.telemetry.failed(opHint, err)
		h.log.Warn("listening for hints failed; polling until it works again", slog.Any("error", err))
		pauseFor(ctx, jittered(pause))
		pause = min(2*pause, relistenMost)
	}
}
