// Package client calls the API within the process, on behalf of the caller in the context.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// maxAnswer bounds the memory of one answer.
const maxAnswer = 32 << 20

// Client calls the operations of the API. It has no credentials of its own: the API finds
// the caller in the context, as guard.Admit has left it there. It may be used concurrently.
type Client struct {
	api http.Handler
}

// New returns a client of the operations, which the handler must serve without Admit.
func New(api http.Handler) *Client { return &Client{api} }

// Request is a call. Only Method and Path must be set.
type Request struct {
	Method string
	// Path is escaped; see Path.
	Path   string
	Query  url.Values
	Header http.Header
	// Body is sent as JSON, json.RawMessage to the letter; nil for none.
	Body any
}

// Path joins the parts of a path, and escapes each.
func Path(parts ...string) string {
	escaped := &strings.Builder{}
	for _, part := range parts {
		escaped.WriteString("/" + url.PathEscape(part))
	}
	return escaped.String()
}

// Get reads. It fills in into, a pointer to a type of api/v1. A refusal of the API is a
// *v1.Problem.
func (c *Client) Get(ctx context.Context, path string, query url.Values, into any) error {
	return c.Call(ctx, Request{Method: http.MethodGet, Path: path, Query: query}, into)
}

// Send changes something. body and into may be nil. A refusal of the API is a *v1.Problem.
func (c *Client) Send(ctx context.Context, method, path string, body, into any) error {
	return c.Call(ctx, Request{Method: method, Path: path, Body: body}, into)
}

// Call makes the request, and fills in into unless it is nil. A refusal of the API is a
// *v1.Problem.
func (c *Client) Call(ctx context.Context, asked Request, into any) error {
	request, err := asked.request(ctx)
	if err != nil {
		return fmt.Errorf("%s %s: %w", asked.Method, asked.Path, err)
	}
	answer := &recorder{header: http.Header{}}
	c.api.ServeHTTP(answer, request)
	if err := answer.read(into); err != nil {
		return fmt.Errorf("%s %s: %w", asked.Method, asked.Path, err)
	}
	return nil
}

func (r Request) request(ctx context.Context) (*http.Request, error) {
	body := io.Reader(http.NoBody)
	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if sent, ok := r.Body.(json.RawMessage); ok {
			text, err = sent, nil // Marshal would compact it.
		}
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	target := r.Path
	if len(r.Query) > 0 {
		target += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, target, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	request.RequestURI = target
	request.Header.Set("Accept", "application/json")
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

// recorder keeps an answer. It never fails to write, because the API takes that for a client
// that has left.
type recorder struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *recorder) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.tooLong = a.tooLong || a.body.Len()+len(text) > maxAnswer; !a.tooLong {
		a.body.Write(text)
	}
	return len(text), nil
}

// read decodes the answer.
func (a *recorder) read(into any) error {
	if a.tooLong {
		return fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	if a.status >= http.StatusBadRequest {
		return a.problem()
	}
	if into == nil || a.body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(a.body.Bytes(), into)
}

func (a *recorder) problem() error {
	media, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	problem := &v1.Problem{}
	if media != v1.ProblemMedia || json.Unmarshal(a.body.Bytes(), problem) != nil {
		return v1.NewProblem(a.status, http.StatusText(a.status))
	}
	return problem
}

// ProblemOf returns the refusal of the API that the error is, or nil.
func ProblemOf(err error) *v1.Problem {
	var problem *v1.Problem
	if errors.As(err, &problem) {
		return problem
	}
	return nil
}
