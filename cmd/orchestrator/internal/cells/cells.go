// Package cells shows several servers, each of another cell, to a client as if they were
// one. A request that names a job by its id goes to the cell of the job. Lists and figures
// are asked of all servers, and merged. Everything else is of one cell, and refused.
package cells

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Server is where the API of a cell is.
type Server struct {
	// Cell is none if nobody has said which it is.
	Cell job.Cell
	URL  string
}

func (s Server) String() string {
	if s.Cell == (job.Cell{}) {
		return s.URL
	}
	return "cell " + s.Cell.String() + ", " + s.URL
}

// name is short: the number, or the address if nobody has said which it is.
func (s Server) name() string {
	if s.Cell == (job.Cell{}) {
		return strings.TrimPrefix(strings.TrimPrefix(s.URL, "http://"), "https://")
	}
	return s.Cell.String()
}

// ParseServer reads a URL, or NUMBER=URL.
func ParseServer(text string) (Server, error) {
	number, address, found := strings.Cut(text, "=")
	n, err := strconv.ParseUint(number, 10, 8)
	switch {
	case found && err == nil:
		s := Server{Cell: job.CellOf(uint8(n)), URL: strings.TrimRight(address, "/")}
		return s, s.check()
	case found && !strings.Contains(number, ":"):
		return Server{}, fmt.Errorf("%q is not the number of a cell, from 0 to 255", number)
	}
	s := Server{URL: strings.TrimRight(text, "/")}
	return s, s.check()
}

func (s Server) check() error {
	parsed, err := url.Parse(s.URL)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.User != nil || parsed.RawQuery != "" {
		return fmt.Errorf("%q is not the address of a server, such as http://cell-0.internal:8080", s.URL)
	}
	return nil
}

// ReadFile reads a line for each cell: its number, and its URL. A line may be empty, or begin
// with #.
func ReadFile(text []byte) (all []Server, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not a number and a URL, such as: 0 http://cell-0.internal:8080", n)
		}
		s, err := ParseServer(fields[0] + "=" + fields[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, errors.New("it names no cell")
	}
	return all, lines.Err()
}

// Check refuses servers of which two are the same, or of the same cell.
func Check(servers []Server) error {
	for i, one := range servers {
		for _, other := range servers[:i] {
			if one.URL == other.URL || one.Cell != (job.Cell{}) && one.Cell == other.Cell {
				return fmt.Errorf("two servers are of one cell: %s; %s", other, one)
			}
		}
	}
	return nil
}

// Transport carries the requests of a client to the servers. The host of a request does not
// count.
type Transport struct {
	Servers []Server
	Carrier http.RoundTripper
	// Watch leaves servers that do not answer out of lists and figures; nil for a Transport that
	// refuses to show a part.
	Watch *Watch
}

// CloseIdleConnections is what http.Client calls.
func (t *Transport) CloseIdleConnections() { closeIdle(t.Carrier) }

func closeIdle(carrier http.RoundTripper) {
	if closes, ok := carrier.(interface{ CloseIdleConnections() }); ok {
		closes.CloseIdleConnections()
	}
}

// idIn finds the id by which a path names something of one cell.
var idIn = regexp.MustCompile(`^/(?:jobs|workflows|erasures|debug/jobs|debug/operations|debug/plugins/commands)/([0-9A-Fa-f-]{36})(?:/|$)`)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if found := idIn.FindStringSubmatch(r.URL.Path); found != nil {
		if id, err := job.ParseID(found[1]); err == nil {
			return t.one(r, body, id)
		}
	}
	if r.Method == http.MethodGet {
		if merge, known := merged[r.URL.Path]; known {
			return t.all(r, merge)
		}
		if merge, known := forPages[r.URL.Path]; known && t.Watch != nil {
			return t.all(r, merge)
		}
		if t.Watch != nil && declared.MatchString(r.URL.Path) {
			return t.first(r, body, t.Servers)
		}
	}
	return refusal(r, http.StatusMisdirectedRequest, "this is of one cell, and several servers are named: name one with --server"), nil
}

// one asks the cell of the id. If nobody has said which server that is, it asks one after
// the other until one knows the id.
func (t *Transport) one(r *http.Request, body []byte, id job.ID) (*http.Response, error) {
	candidates := t.Servers
	if cell := id.Cell(); cell != (job.Cell{}) {
		of := func(cell job.Cell) []Server {
			return slices.DeleteFunc(slices.Clone(t.Servers), func(s Server) bool { return s.Cell != cell })
		}
		if candidates = of(cell); len(candidates) == 0 {
			candidates = of(job.Cell{})
		}
		if len(candidates) == 0 {
			return refusal(r, http.StatusNotFound, fmt.Sprintf("the id is of cell %s, of which no server is named", cell)), nil
		}
	}
	return t.first(r, body, candidates)
}

// first asks one server after the other until one knows what is asked for, whose id may be
// of another cell. If the last knows
// nothing, one that is left out may.
func (t *Transport) first(r *http.Request, body []byte, candidates []Server) (*http.Response, error) {
	var without []string
	var answer *http.Response
	for _, s := range candidates {
		if why := t.Watch.missing(s); why != "" {
			without = append(without, s.String()+": "+why)
			continue
		}
		if answer != nil {
			_ = answer.Body.Close()
		}
		var err error
		if answer, err = t.ask(r, s, r.URL.RawQuery, body); err != nil || answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusMisdirectedRequest {
			return answer, err
		}
	}
	if len(without) > 0 {
		if answer != nil {
			_ = answer.Body.Close()
		}
		return unavailable(r, strings.Join(without, "; ")), nil
	}
	return answer, nil
}

// merge makes one answer of those of all servers.
type merge func(t *Transport, r *http.Request) (any, error)

// all answers with what the servers have answered together. If one of them refuses, the
// answer is its refusal: a part would look like the whole.
func (t *Transport) all(r *http.Request, merge merge) (*http.Response, error) {
	made, err := merge(t, r)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return refused.answer, nil
	case err != nil:
		return nil, err
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	return answered(r, http.StatusOK, "application/json", text), nil
}

// refusedError is an answer of a server that is not 200.
type refusedError struct{ answer *http.Response }

func (e *refusedError) Error() string { return e.answer.Status }

// gather asks all servers at once; each with a query of its own, but none if that is nil. There
// is no text of a server that was not asked, or is left out.
func (t *Transport) gather(r *http.Request, queries []url.Values) ([][]byte, error) {
	texts, failed := make([][]byte, len(t.Servers)), make([]error, len(t.Servers))
	var asked sync.WaitGroup
	for i, s := range t.Servers {
		if queries[i] == nil {
			continue
		}
		asked.Go(func() { texts[i], failed[i] = t.reading(r, s, queries[i]) })
	}
	asked.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(texts, func(text []byte) bool { return text != nil }) {
		return nil, &refusedError{unavailable(r, t.silence())} //nolint:bodyclose // the client closes it
	}
	return texts, nil
}

// silence says why no server has answered.
func (t *Transport) silence() string {
	var all []string
	for _, s := range t.Servers {
		if why := t.Watch.missing(s); why != "" {
			all = append(all, s.String()+": "+why)
		}
	}
	return "no cell answers: " + strings.Join(all, "; ")
}

// of is what a server has said.
type of[T any] struct {
	server Server
	said   T
}

// every asks all servers the same, and decodes their answers.
func every[T any](t *Transport, r *http.Request) ([]of[T], error) {
	queries := make([]url.Values, len(t.Servers))
	for i := range queries {
		queries[i] = r.URL.Query()
	}
	texts, err := t.gather(r, queries)
	if err != nil {
		return nil, err
	}
	var all []of[T]
	for i, text := range texts {
		if text == nil {
			continue
		}
		one := of[T]{server: t.Servers[i]}
		if err := json.Unmarshal(text, &one.said); err != nil {
			return nil, fmt.Errorf("%s: the answer is not what was expected: %w", one.server, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// ask sends the request to a server. Errors name it.
func (t *Transport) ask(r *http.Request, s Server, query string, body []byte) (*http.Response, error) {
	sent := r.Clone(r.Context())
	target, err := url.Parse(s.URL + r.URL.EscapedPath())
	if err != nil {
		return nil, err
	}
	target.RawQuery = query
	sent.URL, sent.Host, sent.Body, sent.GetBody, sent.ContentLength = target, "", nil, nil, int64(len(body))
	if body != nil {
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := t.Carrier.RoundTrip(sent)
	if err != nil {
		return nil, &apiclient.ServerError{Server: s.String(), Err: err}
	}
	if refused := s.mismatch(r, answer); refused != nil {
		_ = answer.Body.Close()
		return refused, nil
	}
	return answer, nil
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

func refusal(r *http.Request, status int, detail string) *http.Response {
	text, _ := json.Marshal(v1.NewProblem(status, detail)) // it always marshals
	return answered(r, status, "application/problem+json", text)
}

func answered(r *http.Request, status int, media string, text []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}
