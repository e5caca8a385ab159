package job

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Event says that a job has ended. A job that was requeued has one for each end.
type Event struct {
	// ID counts all events, without gaps, in the order in which they become visible.
	ID     int64
	At     time.Time
	JobID  ID
	Type   string
	Tenant string
	Tags   []string
	State  State
}

// EventName names the end of a job in that state: for receivers of callbacks, and for
// readers of events.
func EventName(ended State) string { return "job." + string(ended) }

// EventFilter chooses events. A zero field is no restriction.
type EventFilter struct{ Type, Tenant, Tag string }

// Matches reports whether the event is one of those chosen.
func (f EventFilter) Matches(e *Event) bool {
	return (f.Type == "" || f.Type == e.Type) && (f.Tenant == "" || f.Tenant == e.Tenant) &&
		(f.Tag == "" || slices.Contains(e.Tags, f.Tag))
}

// EventLog says which ends become events, and how long these are kept.
type EventLog struct {
	// Keep is how long; zero if nothing is recorded.
	Keep time.Duration
	// Most is how many events are kept, however new they are.
	Most int64
	// Types are the job types whose ends become events; none for all. Deliveries have no
	// events.
	Types []string
}

// On reports whether anything is recorded.
func (l EventLog) On() bool { return l.Keep > 0 }

// Records reports whether the ends of jobs of the type become events.
func (l EventLog) Records(jobType string) bool {
	return l.On() && jobType != DeliveryType && (len(l.Types) == 0 || slices.Contains(l.Types, jobType))
}

// EventPage is a part of the events that are kept, oldest first.
type EventPage struct {
	Events []Event
	// Last is the id of the newest event, whether it is on the page or still kept or not.
	Last int64
}

// EventStream is one client's way through the events. Only one goroutine may use it.
type EventStream interface {
	// Next waits for events, and returns some that match the client's filter; perhaps none.
	Next(ctx context.Context) (EventBatch, error)
	// Position is the id of the last event that was looked at, whether it matched or not.
	Position() int64
	Close()
}

// EventBatch is what comes next on a stream.
type EventBatch struct {
	// Gap, if any, is before the events.
	Gap    *EventGap
	Events []Event
}

// EventGap says that the events after After and before Next were deleted, or lost in a
// failover, before the client has seen them.
type EventGap struct{ After, Next int64 }

// ErrTooManyStreams says that the process sends events to as many clients as it may.
var ErrTooManyStreams = errors.New("too many clients follow events")
