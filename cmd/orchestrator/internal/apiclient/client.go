// Package apiclient talks to Holdfast's HTTP API, over the network or within the
// process. It keeps answers as they came, so that they can be printed unchanged. The
// caller decodes them into the types of api/v1.
package apiclient

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
	"strings"
	"time"
	"unicode"
)

// usualTime bounds a request whose answer should not take long: by default, the
// server itself gives up after 30 s.
const usualTime = time.Minute

// Config is what New needs.
type Config struct {
	// Server is the address of the API, such as http://127.0.0.1:8080.
	Server string
	// Login is sent with every request.
	Login Login
	// Transport carries the requests; nil for the network.
	Transport http.RoundTripper
	// Agent is the User-Agent header.
	Agent string
}

// Client talks to one server. It may be used concurrently.
type Client struct {
	server *url.URL
	login  Login
	agent  string
	http   *http.Client
}

// New returns a client. It does not contact the server yet.
func New(c Config) (*Client, error) {
	server, err := url.Parse(strings.TrimRight(c.Server, "/"))
	switch {
	case err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https"):
		return nil, fmt.Errorf("%q is not an address such as http://127.0.0.1:8080", c.Server)
	case server.User != nil:
		return nil, errors.New("the address of the server holds a password; set HOLDFAST_USER and HOLDFAST_PASSWORD")
	case server.RawQuery != "" || server.Fragment != "":
		return nil, fmt.Errorf("%q is more than the address of a server", c.Server)
	}
	if c.Transport == nil {
		c.Transport = Network()
	}
	return &Client{server: server, login: c.Login, agent: c.Agent, http: &http.Client{
		Transport: c.Transport,
		// The API never redirects, and credentials must go nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Network carries requests over the network.
func Network() *http.Transport {
	network := http.DefaultTransport.(*http.Transport).Clone()
	network.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return network
}

// Server is the address of the API.
func (c *Client) Server() string { return c.server.String() }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

type reasonKey struct{}

// Because gives the requests of the context a reason for the audit log; empty for none.
func Because(ctx context.Context, reason string) context.Context {
	return context.WithValue(ctx, reasonKey{}, reason)
}

type keyKey struct{}

// Keyed also sends the idempotency key of a submission in the header, where proxies see it,
// if a header can carry it; empty for none.
func Keyed(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// Answer is the JSON of an answer, as it came.
type Answer []byte

// Into decodes the answer.
func (a Answer) Into(v any) error {
	if err := json.Unmarshal(a, v); err != nil {
		return fmt.Errorf("the server's answer is not what was expected: %w", err)
	}
	return nil
}

// Get requests a resource.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (Answer, error) {
	return c.call(ctx, http.MethodGet, path, query, nil, usualTime)
}

// GetSlow is Get for an answer that may take as long as the limit.
func (c *Client) GetSlow(ctx context.Context, path string, query url.Values, limit time.Duration) (Answer, error) {
	return c.call(ctx, http.MethodGet, path, query, nil, limit+usualTime)
}

// Post sends JSON; body is nil for none.
func (c *Client) Post(ctx context.Context, path string, query url.Values, body []byte) (Answer, error) {
	return c.call(ctx, http.MethodPost, path, query, body, usualTime)
}

// Patch sends the changes of a resource as JSON.
func (c *Client) Patch(ctx context.Context, path string, query url.Values, body []byte) (Answer, error) {
	return c.call(ctx, http.MethodPatch, path, query, body, usualTime)
}

// Put replaces a resource by the JSON.
func (c *Client) Put(ctx context.Context, path string, body []byte) (Answer, error) {
	return c.call(ctx, http.MethodPut, path, nil, body, usualTime)
}

// Delete deletes a resource.
func (c *Client) Delete(ctx context.Context, path string) (Answer, error) {
	return c.call(ctx, http.MethodDelete, path, nil, nil, usualTime)
}

func (c *Client) call(ctx context.Context, method, path string, query url.Values, body []byte, limit time.Duration) (Answer, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(body)
	}
	answer, err := c.send(bounded, method, path, query, "application/json", sent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("the answer of %s is not JSON: is that a Holdfast server?", c.server)
	}
	return Answer(bytes.TrimRight(text, "\n")), nil
}

// send returns a successful answer, whose body the caller must close. Any other
// answer is a Problem.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, mediaType string, body io.Reader) (*http.Response, error) {
	target := c.server.String() + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", mediaType)
	}
	request.Header.Set("Accept", mediaType)
	request.Header.Set("User-Agent", c.agent)
	if reason, _ := ctx.Value(reasonKey{}).(string); reason != "" {
		request.Header.Set("X-Holdfast-Reason", reason)
	}
	if key, _ := ctx.Value(keyKey{}).(string); headerKey(key) != "" {
		request.Header.Set("Idempotency-Key", headerKey(key))
	}
	c.login.Sign(request)
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if answer.StatusCode/100 != 2 {
		defer func() { _ = answer.Body.Close() }()
		return nil, problemOf(answer, c.login)
	}
	return answer, nil
}

// headerKey is the key as it stands in a header: bare, or as a structured field's string
// (RFC 9651). It is empty for a key that no header can carry.
func headerKey(key string) string {
	outside := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case strings.ContainsFunc(key, unicode.IsControl):
		return ""
	case !strings.HasPrefix(key, `"`) && strings.TrimSpace(key) == key:
		return key
	case strings.ContainsFunc(key, outside):
		return ""
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// Path joins the parts of a path below base, and escapes each.
func Path(base string, parts ...string) string {
	for _, part := range parts {
		base += "/" + url.PathEscape(part)
	}
	return base
}
