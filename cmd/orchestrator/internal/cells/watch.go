package cells

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

const (
	// lookEvery is how often a server is asked whether it answers.
	lookEvery = 2 * time.Second
	// looksFor is how long it may take to. Nobody waits for one that took longer.
	looksFor = 2 * time.Second
	// looksAt is asked for that: it reads the database, little of it, and needs what the pages
	// need.
	looksAt = "/debug/pauses"
	// maxReason bounds what is read of a refusal.
	maxReason = 64 << 10
)

// Watch knows which servers answer. A Transport that has one leaves the others out of lists
// and figures, and does not wait for them. A nil Watch takes all to answer.
type Watch struct {
	servers []Server
	carrier http.RoundTripper

	mu     sync.Mutex
	states map[Server]condition
}

// condition is how a server is.
type condition struct {
	// missing is why it is left out; empty if it is not.
	missing string
	since   time.Time
}

// NewWatch returns a Watch that takes all to answer. The carrier signs requests.
func NewWatch(servers []Server, carrier http.RoundTripper) *Watch {
	w := &Watch{servers: servers, carrier: carrier, states: make(map[Server]condition, len(servers))}
	now := time.Now()
	for _, s := range servers {
		w.states[s] = condition{since: now}
	}
	return w
}

// Look asks all servers at once whether they answer.
func (w *Watch) Look(ctx context.Context) {
	var asked sync.WaitGroup
	for _, s := range w.servers {
		asked.Go(func() {
			err := w.ask(ctx, s)
			if ctx.Err() == nil {
				w.note(s, err)
			}
		})
	}
	asked.Wait()
}

// Run looks again and again, until the context ends.
func (w *Watch) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.Look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watch) ask(ctx context.Context, s Server) error {
	ctx, cancel := context.WithTimeout(ctx, looksFor)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+looksAt, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := w.carrier.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusOK {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	return refusedBy(answer)
}

// refusedBy is what an answer that is not 200 says.
func refusedBy(answer *http.Response) error {
	var problem v1.Problem
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason)) // What came is enough.
	if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return errors.New(problem.Detail)
}

// note keeps whether a server answers: it does if there is no error.
func (w *Watch) note(s Server, err error) {
	why := reason(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.states[s]; (before.missing == "") != (why == "") {
		w.states[s] = condition{missing: why, since: time.Now()}
	}
}

// reason is an error for people, without the server, which is known.
func reason(err error) string {
	var named *apiclient.ServerError
	if errors.As(err, &named) {
		err = named.Err
	}
	var of *net.OpError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &of):
		return of.Err.Error()
	}
	return strings.TrimSuffix(err.Error(), ".")
}

// missing says why a server is left out; empty if it is not.
func (w *Watch) missing(s Server) string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[s].missing
}

// lost notes that a server did not answer a request, and reports whether it is left out then:
// it is not if nobody waits for the answer any more.
func (w *Watch) lost(r *http.Request, s Server, err error) bool {
	if w == nil || r.Context().Err() != nil {
		return false
	}
	w.note(s, err)
	return true
}

// Cells implements ui.Cells.
func (w *Watch) Cells() []ui.Cell {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []ui.Cell
	for _, s := range w.servers {
		all = append(all, ui.Cell{Name: s.name(), URL: s.URL, Missing: w.states[s].missing, Since: w.states[s].since})
	}
	return all
}

const (
	// answerWithin bounds a request of the pages that has no deadline of its own.
	answerWithin = time.Minute
	// headroom is the share of the time for an answer that one server gets of a reading, so
	// that the others are shown although it is silent.
	headroom = 2
)

// ServeHTTP serves the merged API, for the pages.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	answer, err := t.RoundTrip(r.WithContext(ctx))
	if err != nil {
		answer = unavailable(r, err.Error()) //nolint:bodyclose // closed below
	}
	defer func() { _ = answer.Body.Close() }()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // It fails when the server has left, and the JSON is then broken.
}

func unavailable(r *http.Request, why string) *http.Response {
	text, _ := json.Marshal(v1.Unavailable(why)) // it always marshals
	return answered(r, http.StatusServiceUnavailable, v1.ProblemMedia, text)
}

// reading asks a server its part of a list or of figures. It returns nil if the server is left
// out.
func (t *Transport) reading(r *http.Request, s Server, query url.Values) ([]byte, error) {
	if t.Watch.missing(s) != "" {
		return nil, nil
	}
	part := r
	if deadline, bounded := r.Context().Deadline(); bounded && t.Watch != nil {
		ctx, cancel := context.WithTimeout(r.Context(), time.Until(deadline)/headroom)
		defer cancel()
		part = r.WithContext(ctx)
	}
	answer, err := t.ask(part, s, query.Encode(), nil)
	if err != nil {
		if t.Watch.lost(r, s, err) {
			return nil, nil
		}
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil && t.Watch.lost(r, s, err):
		return nil, nil
	case err != nil:
		return nil, &apiclient.ServerError{Server: s.String(), Err: err}
	case answer.StatusCode == http.StatusOK:
		return text, nil
	}
	answer.Body = io.NopCloser(bytes.NewReader(text))
	if away := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}; slices.Contains(away, answer.StatusCode) {
		if t.Watch.lost(r, s, refusedBy(answer)) {
			return nil, nil
		}
		answer.Body = io.NopCloser(bytes.NewReader(text))
	}
	return nil, &refusedError{answer}
}
