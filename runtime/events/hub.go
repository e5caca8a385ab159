// Package events sends the ends of jobs to clients that follow them. A process reads each
// new event once, however many clients there are.
package events

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// remembered is how many of the newest events are kept in memory, for all clients
	// together. A client that is further behind reads from the database.
	remembered = 4096
	// pageSize bounds the events of one read, and of one call of Next.
	pageSize = 500
	// leastPause bounds how often the database is asked.
	leastPause = 20 * time.Millisecond
	// readWithin bounds one read.
	readWithin = 10 * time.Second
)

// Store is where events are read.
type Store interface {
	// NewEvents returns up to limit events after the id.
	NewEvents(ctx context.Context, after int64, limit int) (job.EventPage, error)
	// OldEvents is the same for a client that catches up.
	OldEvents(ctx context.Context, after int64, limit int) (job.EventPage, error)
}

// Config says how a hub works.
type Config struct {
	// Poll is how often to look for events that no hint announced.
	Poll time.Duration
	// Wake is raised when events were recorded.
	Wake loop.Signal
	// MaxStreams bounds the clients at once.
	MaxStreams int
	Log        *slog.Logger
}

// Hub is safe for concurrent use. It reads only while somebody follows.
type Hub struct {
	cfg   Config
	store Store
	began loop.Signal // there are streams

	mu      sync.Mutex
	streams int
	// recent are the newest events, without gaps, up to the id last; it is -1 until the
	// hub knows where it is.
	recent []job.Event
	last   int64
	// newest is the event with the id last; nil if that is not known.
	newest *job.Event
	// reset counts how often the database was found to have lost events, and resetTo is the
	// last id when that was found: nobody knows which events before it are others.
	reset   int
	resetTo int64
	// grown is closed when recent has grown or was reset.
	grown chan struct{}
}

// New returns a hub whose streams wait until Run runs.
func New(cfg Config, store Store) *Hub {
	return &Hub{cfg: cfg, store: store, began: loop.NewSignal(), last: -1, grown: make(chan struct{})}
}

// Run reads events until the context ends.
func (h *Hub) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if h.Streams() == 0 {
			h.forget()
			h.began.Wait(ctx, time.Hour)
			continue
		}
		more, err := h.read(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			h.cfg.Log.Warn("events could not be read; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
		case !more:
			loop.Pause(ctx, leastPause)
			h.cfg.Wake.Wait(ctx, loop.Jittered(h.cfg.Poll))
		}
	}
}

// Streams is how many clients follow.
func (h *Hub) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

func (h *Hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams == 0 {
		h.recent, h.last, h.newest = nil, -1, nil
	}
}

// read reads a page, and reports whether there may be more.
func (h *Hub) read(ctx context.Context) (more bool, err error) {
	h.mu.Lock()
	after := h.last
	h.mu.Unlock()
	switch {
	case after < 0:
		after = math.MaxInt64 // the page has the last id alone
	case after > 0:
		after-- // to see whether it is still the same event
	}
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	page, err := h.store.NewEvents(ctx, after, pageSize+1)
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	changed := h.compare(&page)
	switch {
	case h.last < 0:
		h.last = page.Last
	case changed || page.Last < h.last: // a database that was restored, or a standby that lost commits
		h.recent, h.last, h.newest = nil, page.Last, nil
		h.reset++
		h.resetTo = h.last
	case len(page.Events) == 0 && page.Last > h.last:
		h.recent, h.last, h.newest = nil, page.Last, nil // deleted before they were read
	case len(page.Events) == 0:
		return false, nil
	default:
		if page.Events[0].ID != h.last+1 {
			h.recent = nil
		}
		h.recent = append(h.recent, page.Events...)
		h.newest = &page.Events[len(page.Events)-1]
		h.last = h.newest.ID
		if extra := len(h.recent) - remembered; extra > remembered {
			h.recent = append([]job.Event(nil), h.recent[extra:]...)
		}
	}
	close(h.grown)
	h.grown = make(chan struct{})
	return len(page.Events) >= pageSize, nil
}

// compare takes the event with the id last off the page, and reports whether it is another
// one than it was: the database has lost events, and has given their ids again.
func (h *Hub) compare(page *job.EventPage) (changed bool) {
	if h.last < 0 || len(page.Events) == 0 || page.Events[0].ID != h.last {
		return false
	}
	now, before := &page.Events[0], h.newest
	page.Events, h.newest = page.Events[1:], now
	return before != nil && (now.JobID != before.JobID || now.State != before.State || !now.At.Equal(before.At))
}
