package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const mediaEvents = "text/event-stream"

const (
	// heartbeat is how long a stream is silent at most: proxies cut silent connections.
	heartbeat = 15 * time.Second
	// acceptWithin is how long a client may take to accept what is sent to it.
	acceptWithin = 20 * time.Second
	// reconnectAfter is how long a client waits until it comes back.
	reconnectAfter = time.Second
)

// eventRoutes send the ends of jobs to clients that follow them.
type eventRoutes struct {
	events   Events
	stopping <-chan struct{}
	log      *slog.Logger
	cutOff   func(context.Context) // may be nil
}

func (e *eventRoutes) add(r *router) {
	add(r, "GET /events", "follow-events", guard.Read, e.follow, ownDeadline)
}

type eventsInput struct {
	call
	JobType string       `query:"jobType" maxLength:"200" doc:"Only jobs of this type."`
	Tenant  string       `query:"tenant" maxLength:"200" doc:"Only jobs of this tenant."`
	Tag     string       `query:"tag" maxLength:"100" doc:"Only jobs with this tag."`
	After   eventIDParam `query:"lastEventId" doc:"Begin after this event; 0 for everything that is kept. By default, only new events are sent. The header Last-Event-ID comes first."`
	Last    string       `header:"Last-Event-ID" doc:"The id of the last event that the client has seen. EventSource sends it when it reconnects."`
}

// eventIDParam is the id of an event; nil for none.
type eventIDParam struct{ id *int64 }

// UnmarshalText accepts whole numbers from 0.
func (p *eventIDParam) UnmarshalText(text []byte) error {
	id, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || id < 0 {
		return errors.New("must be the id of an event, or 0")
	}
	p.id = &id
	return nil
}

// Schema describes the id.
func (eventIDParam) Schema(huma.Registry) *huma.Schema {
	least := 0.0
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least}
}

func (e *eventRoutes) follow(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	tenant, err := tenantOf(ctx, in.Tenant)
	if err != nil {
		return nil, err
	}
	after := in.After
	if len(in.request.Header.Values("Last-Event-ID")) > 0 {
		if err := after.UnmarshalText([]byte(in.Last)); err != nil {
			return nil, invalid(at("header.Last-Event-ID", err.Error()))
		}
	}
	if e.events == nil {
		return nil, problem(http.StatusConflict, "this orchestrator records no events: set events.keep in its configuration, such as 1h")
	}
	stream, err := e.events.Follow(ctx, job.EventFilter{Type: in.JobType, Tenant: tenant, Tag: in.Tag}, after.id)
	if errors.Is(err, job.ErrTooManyStreams) {
		return nil, v1.Unavailable("too many clients follow events; try again later, or another orchestrator")
	}
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(huma.Context) {
		defer stream.Close()
		s := &eventStream{stream: stream, control: http.NewResponseController(in.answer), out: bufio.NewWriterSize(in.answer, 16<<10)}
		header := in.answer.Header()
		header.Set("Content-Type", mediaEvents)
		header.Set("Cache-Control", "no-store")
		header.Set("X-Accel-Buffering", "no") // nginx would hold events back
		if in.request.Method == http.MethodHead {
			in.answer.WriteHeader(http.StatusOK)
			return
		}
		endSpan(ctx, http.StatusOK) // A stream may last for days.
		_ = s.control.SetReadDeadline(time.Time{})
		if err := s.run(ctx, e.stopping); err != nil {
			if e.cutOff != nil {
				e.cutOff(ctx)
			}
			e.log.InfoContext(ctx, "a client that follows events was cut off", slog.String("client", guard.Name(ctx)),
				slog.Int64("after", stream.Position()), slog.Any("error", err))
		}
	}}, nil
}

// eventStream writes a stream to one client.
type eventStream struct {
	stream  job.EventStream
	control *http.ResponseController
	out     *bufio.Writer
}

// run sends events until the client leaves or the server stops. An error says that the
// client was cut off: it accepted nothing for too long, or the events could not be read.
func (s *eventStream) run(ctx context.Context, stopping <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.beat(fmt.Sprintf("retry: %d\n", reconnectAfter.Milliseconds()))
	for {
		if err := s.flush(); err != nil {
			// The server cancels the context after any error.
			if ctx.Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil // It has left.
			}
			return err
		}
		waiting, stop := context.WithTimeout(ctx, heartbeat)
		batch, err := s.stream.Next(waiting)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
			s.beat(": still here\n")
			continue
		case err != nil:
			return err
		}
		if batch.Gap != nil {
			s.message(batch.Gap.Next-1, "gap", v1.EventGap(*batch.Gap))
		}
		for i := range batch.Events {
			s.allow()
			s.message(batch.Events[i].ID, job.EventName(batch.Events[i].State), v1.EventOf(batch.Events[i]))
		}
	}
}

// beat tells the client where it is, so that it misses nothing and gets no gap that does not
// concern it when it comes back. A message without data is not shown to anybody.
func (s *eventStream) beat(line string) {
	s.allow()
	_, _ = fmt.Fprintf(s.out, "%sid: %d\n\n", line, s.stream.Position())
}

func (s *eventStream) message(id int64, name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // strings, numbers and times always marshal
	}
	_, _ = fmt.Fprintf(s.out, "id: %d\nevent: %s\ndata: %s\n\n", id, name, text)
}

// allow gives the client the time to accept what is written next.
func (s *eventStream) allow() { _ = s.control.SetWriteDeadline(time.Now().Add(acceptWithin)) }

func (s *eventStream) flush() error {
	s.allow()
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}
