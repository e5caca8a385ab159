package jobs

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// scheduled is a store all of whose jobs wait.
type scheduled struct{ Store }

func (scheduled) Get(context.Context, job.ID) (job.View, error) {
	return job.View{State: job.Created}, nil
}

func (scheduled) Ended(context.Context, []job.ID) ([]job.View, error) { return nil, nil }

// hinting returns waiters, and takes the hints that they have sent since.
func hinting(t *testing.T) (w *waiters, sent func(job.Hint) bool) {
	t.Helper()
	cfg := Config{PollInterval: time.Second, Log: slog.New(slog.DiscardHandler)}
	hints := newHints(scheduled{}, cfg.Log, unmeasured(t), new(Pace))
	return newWaiters(scheduled{}, cfg, hints), func(hint job.Hint) bool {
		select {
		case <-hints.out[hint].Woken():
			return true
		default:
			return false
		}
	}
}

func TestEndsAreAnnouncedOnlyWhileSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sent := hinting(t)
		w.jobEnded(job.ID{1})
		require.False(t, sent(job.JobsEnded))

		w.awaited()
		require.True(t, sent(job.JobsEnded), "of what ended before we knew")
		w.awaited()
		require.False(t, sent(job.JobsEnded), "known already")
		w.jobEnded(job.ID{2})
		require.True(t, sent(job.JobsEnded))

		time.Sleep(awaitedFor)
		w.jobEnded(job.ID{3})
		require.False(t, sent(job.JobsEnded), "nobody has said so for long")
	})
}

func TestAProcessThatOnlyPollsAlwaysAnnouncesEnds(t *testing.T) {
	w, sent := hinting(t)
	w.cfg.PollOnly = true
	w.hints.pace.Know(job.Crowd{All: 1}) // perhaps no longer
	w.jobEnded(job.ID{1})
	require.True(t, sent(job.JobsEnded))
}

// What was missed while this process did not hear hints may be that another one has waiters.
func TestEndsAreAnnouncedAfterSilenceUnlessThereIsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sent := hinting(t)
		others := func(n int) { w.hints.pace.Know(job.Crowd{All: n}) }
		w.missed()
		require.True(t, sent(job.JobsEnded), "nobody has counted the others yet")
		others(1)
		w.jobEnded(job.ID{1})
		require.False(t, sent(job.JobsEnded), "alone")
		others(2)
		w.jobEnded(job.ID{2})
		require.True(t, sent(job.JobsEnded))
		time.Sleep(awaitedFor)
		w.jobEnded(job.ID{3})
		require.False(t, sent(job.JobsEnded), "they would have said so by now")

		others(1)
		w.missed()
		w.jobEnded(job.ID{4})
		require.False(t, sent(job.JobsEnded))
		others(2)
		w.awaited()
		require.True(t, sent(job.JobsEnded), "of what ended while it was not known")
	})
}

// anEnd is a store in which a job ends after a while, of which nobody tells.
type anEnd struct {
	scheduled
	id   job.ID
	from time.Time
}

func (e anEnd) Ended(_ context.Context, ids []job.ID) ([]job.View, error) {
	if !slices.Contains(ids, e.id) || time.Now().Before(e.from) {
		return nil, nil
	}
	return []job.View{{ID: e.id, State: job.Succeeded}}, nil
}

func TestAProcessThatEndsManyAwaitedJobsStillPollsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := hinting(t)
		began := time.Now()
		w.store = anEnd{id: job.ID{1}, from: began.Add(time.Second)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*w.cfg.PollInterval)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { w.run(ctx) })
		own := w.enter(job.ID{2})
		defer w.leave(job.ID{2}, own)
		running.Go(func() {
			for ctx.Err() == nil {
				w.jobEnded(job.ID{2})
				time.Sleep(w.cfg.PollInterval / 10)
			}
		})
		view, err := w.await(ctx, job.ID{1})
		require.NoError(t, err)
		require.Equal(t, job.Succeeded, view.State)
		require.Less(t, time.Since(began), 3*w.cfg.PollInterval)
	})
}

// echoing is a store that hears each hint that it sends, with what others say.
type echoing struct {
	scheduled
	heard chan job.Notice
}

func (e echoing) Send(_ context.Context, n job.Notice) error {
	e.heard <- n
	return nil
}

func (e echoing) Listen(ctx context.Context, ready func(), heard func(job.Notice)) error {
	ready()
	for {
		select {
		case n := <-e.heard:
			heard(n)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestAProcessDoesNotTellItselfThatItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := echoing{heard: make(chan job.Notice)}
		log := slog.New(slog.DiscardHandler)
		hints := newHints(store, log, unmeasured(t), new(Pace))
		ctx, cancel := context.WithCancel(t.Context())
		go hints.run(ctx)
		go hints.listen(ctx)
		synctest.Wait()
		require.Equal(t, []string{}, hints.in[job.JobsAwaited].Take(), "nobody has said so")
		require.Len(t, hints.missed, 1)
		for _, own := range []job.Hint{job.JobsAwaited, job.JobsEnded} {
			synctest.Wait()
			hints.in[own].Take() // of the beginning
			hints.Send(own)
			synctest.Wait()
			require.Equal(t, []string{}, hints.in[own].Take(), own)
			store.heard <- job.Notice{Hint: own, From: "another"}
			synctest.Wait()
			require.Nil(t, hints.in[own].Take(), own)
		}
		cancel()
		synctest.Wait()
	})
}

func TestAProcessAnnouncesItsWaitersAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, sent := hinting(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		for range 3 {
			go func() { _, _ = w.await(ctx, job.ID{1}) }()
		}
		synctest.Wait()
		require.True(t, sent(job.JobsAwaited))
		require.False(t, sent(job.JobsAwaited), "those who come together speak once")
		repeated := 0
		for end := time.Now().Add(3 * awaitedFor); time.Now().Before(end); {
			time.Sleep(time.Second)
			synctest.Wait()
			if sent(job.JobsAwaited) {
				repeated++
			}
		}
		require.InDelta(t, 8, repeated, 1)
		require.Len(t, w.waiting, 1)
		cancel()
		synctest.Wait()
		require.Empty(t, w.waiting)
	})
}
