package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// maxResponseBody is how much of a response's body is kept in the result, in bytes.
const maxResponseBody = 64 << 10

// requestSchema is to requestArgs what emailSchema is to emailArgs.
//
//go:embed request.schema.json
var requestSchema []byte

type requestArgs struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as it is if it is a string, else as JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// ExpectStatus lists the statuses that count as success; empty for any 2xx.
	ExpectStatus statuses `json:"expectStatus,omitempty"`
	// TimeoutSeconds bounds the whole request with redirects and body; nil for
	// defaultRequestTime.
	TimeoutSeconds *float64 `json:"timeoutSeconds,omitempty"`
}

// statuses is one number or a list of them.
type statuses []int

// UnmarshalJSON implements json.Unmarshaler.
func (s *statuses) UnmarshalJSON(text []byte) error {
	var one int
	if err := json.Unmarshal(text, &one); err == nil {
		*s = statuses{one}
		return nil
	}
	return json.Unmarshal(text, (*[]int)(s))
}

type response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Truncated: the body was longer.
	Truncated bool `json:"truncated,omitempty"`
}

// requester makes the requests of HTTP_REQUEST jobs.
type requester struct{ client *http.Client }

const (
	defaultRequestTime = 30 * time.Second
	maxRequestSeconds  = 300
)

func (r requester) handler() plugin.Handler {
	return plugin.HandleResult("HTTP_REQUEST", r.request, plugin.WithSchema(requestSchema),
		plugin.Description("Makes an HTTP request and keeps the answer."),
		plugin.Timeout((maxRequestSeconds+10)*time.Second), plugin.MaxAttempts(5),
		plugin.Retry(plugin.ExponentialBackoff(2*time.Second, 3, 10*time.Minute)))
}

func (r requester) request(ctx context.Context, j plugin.Job[requestArgs]) (response, error) {
	timeout, err := requestTime(j.Args.TimeoutSeconds)
	if err != nil {
		return response{}, plugin.Code(plugin.Permanent(err), "bad_request")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := newRequest(ctx, j)
	if err != nil {
		return response{}, plugin.Code(plugin.Permanent(err), "bad_request")
	}
	span := beginRequest(request)
	answer, err := r.client.Do(request)
	if err != nil {
		span.fail("no_response")
		return response{}, steerTransport(fmt.Errorf("%s %s: %w", request.Method, request.URL.Host, withoutURL(err)))
	}
	defer answer.Body.Close()
	got, err := read(answer)
	if err != nil {
		span.fail("no_response")
		return response{}, fmt.Errorf("read the response: %w", withoutURL(err))
	}
	span.answered(answer.StatusCode)
	return got, judge(answer, j.Args.ExpectStatus, time.Now())
}

// withoutURL removes paths and queries from an error. They may contain
// secrets, and errors are shown to people who may not see the payload. net/http and
// net/url put them in quotes: the URL's own, that of a redirect, and an answer that is
// not HTTP.
func withoutURL(err error) error {
	if about := new(url.Error); errors.As(err, &about) {
		err = about.Err
	}
	text := err.Error()
	if first, last := strings.Index(text, `"`), strings.LastIndex(text, `"`); first < last {
		return errors.New(text[:first] + "…" + text[last+1:])
	}
	return err
}

func requestTime(seconds *float64) (time.Duration, error) {
	if seconds == nil {
		return defaultRequestTime, nil
	}
	if *seconds <= 0 || *seconds > maxRequestSeconds {
		return 0, fmt.Errorf("timeoutSeconds is %g, not above 0 and up to %d", *seconds, maxRequestSeconds)
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}

func newRequest(ctx context.Context, j plugin.Job[requestArgs]) (*http.Request, error) {
	if j.Args.Method == "" { // net/http would use GET
		return nil, errors.New("method is missing")
	}
	target, err := url.Parse(j.Args.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", withoutURL(err))
	}
	if target.Scheme != "http" && target.Scheme != "https" || target.Hostname() == "" {
		return nil, errors.New("url is not an absolute http or https URL")
	}
	for name, value := range j.Args.Headers {
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
	}
	body, contentType, err := requestBody(j.Args.Body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, strings.ToUpper(j.Args.Method), target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	request.Header.Set("User-Agent", "holdfast")
	request.Header.Set("Idempotency-Key", j.ID)
	for name, value := range j.Args.Headers {
		if http.CanonicalHeaderKey(name) == "Host" {
			request.Host = value
			continue
		}
		request.Header.Set(name, value)
	}
	return request, nil
}

// requestBody returns the bytes to send and their default content type.
func requestBody(raw json.RawMessage) (body []byte, contentType string, err error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, "", nil
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return []byte(text), "text/plain; charset=utf-8", err
	default:
		return raw, "application/json", nil
	}
}

func read(answer *http.Response) (response, error) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxResponseBody+1))
	if err != nil {
		return response{}, err
	}
	got := response{Status: answer.StatusCode, Headers: make(map[string]string, len(answer.Header))}
	if len(body) > maxResponseBody {
		got.Truncated = true
		body = body[:maxResponseBody]
	}
	got.Body = strings.ToValidUTF8(string(body), "\uFFFD")
	for name, values := range answer.Header {
		got.Headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return got, nil
}

// judge decides what the response's status means for the job.
func judge(answer *http.Response, expected []int, now time.Time) error {
	status := answer.StatusCode
	if len(expected) == 0 && status/100 == 2 || slices.Contains(expected, status) {
		return nil
	}
	// The server's own text for its status may repeat the path and the query.
	said := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	err := plugin.Code(errors.New("the server answered "+said), fmt.Sprintf("http_%d", status))
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return waitAsTold(err, answer.Header.Get("Retry-After"), now)
	}
	if status/100 == 5 {
		return waitAsTold(err, answer.Header.Get("Retry-After"), now)
	}
	return plugin.Permanent(err)
}
