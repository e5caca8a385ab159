package events

import (
	"context"
	"math"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Stream is one client's way through the events. It holds no events, so that a client that
// reads slowly costs nothing. Only one goroutine may use it.
type Stream struct {
	hub      *Hub
	filter   job.EventFilter
	position int64 // the id of the last event that was looked at
	reset    int
	gap      *job.EventGap // found when the stream began
}

// Follow begins a stream of the events that match the filter: those after the id, or those
// that are recorded from now on if it is nil. Close the stream. It returns job.ErrTooManyStreams, and the errors
// of the store.
func (h *Hub) Follow(ctx context.Context, filter job.EventFilter, after *int64) (job.EventStream, error) {
	h.mu.Lock()
	if h.streams >= h.cfg.MaxStreams {
		h.mu.Unlock()
		return nil, job.ErrTooManyStreams
	}
	h.streams++
	reset := h.reset
	h.mu.Unlock()
	h.began.Raise()
	s := &Stream{hub: h, filter: filter, reset: reset}
	page, err := h.store.OldEvents(ctx, math.MaxInt64, 1)
	if err != nil {
		s.Close()
		return nil, err
	}
	s.position = page.Last
	switch {
	case after == nil:
	case *after > page.Last: // of another database, or lost in a failover
		s.gap = &job.EventGap{After: *after, Next: page.Last + 1}
	default:
		s.position = *after
	}
	return s, nil
}

// Close ends the stream.
func (s *Stream) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.streams--
}

// Position is the id of the last event that was looked at, whether it matched or not.
func (s *Stream) Position() int64 { return s.position }

// Next waits for events, and returns some that match: perhaps none, if the position has moved.
// Errors are those of the store, and the context's.
func (s *Stream) Next(ctx context.Context) (job.EventBatch, error) {
	if s.gap != nil {
		gap := s.gap
		s.gap = nil
		return job.EventBatch{Gap: gap}, nil
	}
	for {
		events, gap, grown, behind := s.recent()
		switch {
		case gap != nil:
			return job.EventBatch{Gap: gap}, nil
		case len(events) > 0:
			return s.advance(events), nil
		case behind:
			return s.catchUp(ctx)
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return job.EventBatch{}, ctx.Err()
		}
	}
}

// recent returns what the hub remembers after the position, and a channel to wait on if that
// is nothing. behind says that the hub has forgotten what comes next.
func (s *Stream) recent() (events []job.Event, gap *job.EventGap, grown <-chan struct{}, behind bool) {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.reset != h.reset {
		s.reset = h.reset
		gap = &job.EventGap{After: s.position, Next: h.resetTo + 1}
		s.position = h.resetTo
		return nil, gap, nil, false
	}
	if h.last < 0 || s.position >= h.last {
		return nil, nil, h.grown, false
	}
	first := h.last - int64(len(h.recent)) + 1
	if s.position < first-1 {
		return nil, nil, nil, true
	}
	events = h.recent[s.position-first+1:]
	return events[:min(len(events), pageSize)], nil, nil, false
}

// catchUp reads a page from the database.
func (s *Stream) catchUp(ctx context.Context) (job.EventBatch, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	page, err := s.hub.store.OldEvents(ctx, s.position, pageSize)
	switch {
	case err != nil:
		return job.EventBatch{}, err
	case len(page.Events) == 0 && page.Last <= s.position:
		return job.EventBatch{}, nil
	case len(page.Events) == 0:
		gap := &job.EventGap{After: s.position, Next: page.Last + 1}
		s.position = page.Last
		return job.EventBatch{Gap: gap}, nil
	case page.Events[0].ID != s.position+1:
		gap := &job.EventGap{After: s.position, Next: page.Events[0].ID}
		batch := s.advance(page.Events)
		batch.Gap = gap
		return batch, nil
	}
	return s.advance(page.Events), nil
}

// advance moves the position behind the events, and chooses those that match.
func (s *Stream) advance(events []job.Event) (batch job.EventBatch) {
	for i := range events {
		if s.filter.Matches(&events[i]) {
			batch.Events = append(batch.Events, events[i])
		}
	}
	s.position = events[len(events)-1].ID
	return batch
}
