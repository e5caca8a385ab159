package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What all notebooks may hold together, in bytes. A plugin has an equal share of
// it, but a quarter at most. What is being received when the share is used up
// comes on top.
const (
	unsavedInAll = 256 << 20
	minShares    = 4
)

// writersAtOnce is how many notebooks are written at the same time, in the order
// they ask: they must leave connections to those who claim and settle.
const writersAtOnce = 2

// shelf has a notebook for each plugin, so that the attempts of one never wait
// behind what those of another report.
type shelf struct {
	// write saves the notes, and returns when trying again is no use.
	write  func([]job.Report)
	settle func(*end)
	// interval is Config.ReportInterval.
	interval time.Duration
	writers  chan struct{}
	// ctx ends when saving is no longer worth a try.
	ctx context.Context

	mu     sync.Mutex
	books  map[string]*notebook
	closed bool
	loops  sync.WaitGroup
}

func newShelf(ctx context.Context, interval time.Duration, write func([]job.Report), settle func(*end)) *shelf {
	return &shelf{
		write: write, settle: settle, interval: interval, ctx: ctx,
		writers: make(chan struct{}, writersAtOnce), books: make(map[string]*notebook),
	}
}

// book returns the notebook of the plugin.
func (s *shelf) book(plugin string) *notebook {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.books[plugin]
	if b == nil {
		b = &notebook{shelf: s, listed: newSignal(), ended: newSignal()}
		s.books[plugin] = b
	}
	return b
}

// share is how many bytes a notebook may hold.
func (s *shelf) share() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return unsavedInAll / max(minShares, len(s.books))
}

// end takes the end of an attempt, and hands it on once what it has reported is
// saved.
func (s *shelf) end(e *end) {
	if e.page == nil {
		s.settle(e)
		return
	}
	e.page.finish(e)
}

// save writes the notes once it is their turn.
func (s *shelf) save(ctx context.Context, batch []taken) {
	select {
	case s.writers <- struct{}{}:
		defer func() { <-s.writers }()
	case <-ctx.Done():
	}
	notes := make([]job.Report, len(batch))
	for i, t := range batch {
		notes[i] = t.note
	}
	s.write(notes)
}

// start runs a loop, unless the shelf is closed.
func (s *shelf) start(loop func(context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.loops.Go(func() { loop(s.ctx) })
	return true
}

// close waits until all is saved, or is not worth a try any more. Nothing is
// saved afterwards.
func (s *shelf) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.loops.Wait()
}
