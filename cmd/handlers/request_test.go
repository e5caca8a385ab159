package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin"
)

func TestMain(m *testing.M) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "handlers"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaryDir)
		os.Exit(code)
	}))
}

func permanent(err error) bool { return plugin.VerdictOf(err).Permanent }

// asking returns a requester whose connections are closed with the test.
func asking(t *testing.T, allowPrivate bool) requester {
	t.Helper()
	r := newRequester(allowPrivate)
	t.Cleanup(r.client.CloseIdleConnections)
	return r
}

func serving(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s.URL
}

func requestJob(t *testing.T, args map[string]any) plugin.Job[requestArgs] {
	t.Helper()
	text, err := json.Marshal(args)
	require.NoError(t, err)
	j := plugin.Job[requestArgs]{ID: "job-1"}
	require.NoError(t, json.Unmarshal(text, &j.Args))
	return j
}

func TestARequestIsMadeAsOrdered(t *testing.T) {
	cases := map[string]struct {
		args              map[string]any
		method, body      string
		contentType, host string
	}{
		"bare":        {map[string]any{"method": "GET"}, "GET", "", "", ""},
		"lower case":  {map[string]any{"method": "delete"}, "DELETE", "", "", ""},
		"text":        {map[string]any{"method": "PUT", "body": "Grüße"}, "PUT", "Grüße", "text/plain; charset=utf-8", ""},
		"JSON":        {map[string]any{"method": "POST", "body": map[string]any{"n": 1}}, "POST", `{"n":1}`, "application/json", ""},
		"own headers": {map[string]any{"method": "POST", "body": "a=1", "headers": map[string]string{"content-type": "application/x-www-form-urlencoded", "Host": "other.example"}}, "POST", "a=1", "application/x-www-form-urlencoded", "other.example"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := make(chan *http.Request, 1)
			url := serving(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				got <- r
				w.Header().Set("X-Answer", "yes")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, "made")
			})
			c.args["url"] = url + "/path?q=1"
			answer, err := asking(t, true).request(t.Context(), requestJob(t, c.args))
			require.NoError(t, err)
			require.Equal(t, 201, answer.Status)
			require.Equal(t, "yes", answer.Headers["X-Answer"])
			require.Equal(t, "made", answer.Body)
			r := <-got
			require.Equal(t, c.method, r.Method)
			require.Equal(t, "/path?q=1", r.RequestURI)
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, c.body, string(body))
			require.Equal(t, c.contentType, r.Header.Get("Content-Type"))
			require.Equal(t, "job-1", r.Header.Get("Idempotency-Key"))
			if c.host != "" {
				require.Equal(t, c.host, r.Host)
			}
		})
	}
}

func TestTheStatusDecides(t *testing.T) {
	after := func(d time.Duration) *time.Duration { return &d }
	cases := map[string]struct {
		status     int
		retryAfter string
		expect     any
		ok         bool
		permanent  bool
		after      *time.Duration
	}{
		"fine":                       {status: 204, ok: true},
		"a redirect to nowhere":      {status: 304, permanent: true},
		"not found":                  {status: 404, permanent: true},
		"expected not to be found":   {status: 404, expect: 404, ok: true},
		"one of those expected":      {status: 404, expect: []int{200, 404}, ok: true},
		"fine but not expected":      {status: 200, expect: []int{201}, permanent: true},
		"too slow":                   {status: 408},
		"too early":                  {status: 425},
		"too many":                   {status: 429},
		"too many for a minute":      {status: 429, retryAfter: "60", after: after(time.Minute)},
		"too many for a year":        {status: 429, retryAfter: "31536000", after: after(maxRetryAfter)},
		"too many, in other words":   {status: 429, retryAfter: "soon"},
		"broken":                     {status: 500},
		"broken for a while":         {status: 503, retryAfter: "5", after: after(5 * time.Second)},
		"not found, says when again": {status: 404, retryAfter: "5", permanent: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			url := serving(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			args := map[string]any{"method": "GET", "url": url}
			if c.expect != nil {
				args["expectStatus"] = c.expect
			}
			_, err := asking(t, true).request(t.Context(), requestJob(t, args))
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			verdict := plugin.VerdictOf(err)
			require.Equal(t, c.permanent, verdict.Permanent)
			require.Equal(t, c.after, verdict.RetryAfter)
			require.Regexp(t, `^http_\d{3}$`, verdict.Code)
		})
	}
}

func TestRetryAfterMayBeADate(t *testing.T) {
	now := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	for date, want := range map[string]time.Duration{
		"Fri, 20 Feb 2026 12:01:30 GMT": 90 * time.Second,
		"Fri, 20 Feb 2026 11:00:00 GMT": 0,
		"Sun, 20 Feb 2028 12:00:00 GMT": maxRetryAfter,
	} {
		require.Equal(t, &want, plugin.VerdictOf(waitAsTold(io.EOF, date, now)).RetryAfter, date)
	}
}

func TestALongOrOddBodyIsBoundedText(t *testing.T) {
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/odd" {
			_, _ = w.Write([]byte("a\xff\x00b"))
			return
		}
		_, _ = io.WriteString(w, "x"+strings.Repeat("é", maxResponseBody))
	})
	answer, err := asking(t, true).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url}))
	require.NoError(t, err)
	require.True(t, answer.Truncated)
	require.True(t, utf8.ValidString(answer.Body))
	require.InDelta(t, maxResponseBody, len(answer.Body), utf8.UTFMax)
	answer, err = asking(t, true).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url + "/odd"}))
	require.NoError(t, err)
	require.Equal(t, "a\uFFFD\x00b", answer.Body)
	require.False(t, answer.Truncated)
}

func TestARequestThatCannotBeMadeFailsForGood(t *testing.T) {
	for name, args := range map[string]map[string]any{
		"no URL":               {"method": "GET"},
		"a relative URL":       {"method": "GET", "url": "/way?key=SECRET"},
		"another scheme":       {"method": "GET", "url": "file:///way?key=SECRET"},
		"no host":              {"method": "GET", "url": "http://:80/way?key=SECRET"},
		"an odd URL":           {"method": "GET", "url": "http://[::1/way?key=SECRET"},
		"an odd escape":        {"method": "GET", "url": "http://127.0.0.1/way%zz?key=SECRET"},
		"an odd port":          {"method": "GET", "url": "http://user:SECRET/way"},
		"an odd method":        {"method": "GET http://127.0.0.1/way?key=SECRET", "url": "http://127.0.0.1/"},
		"no time":              {"method": "GET", "url": "http://127.0.0.1/", "timeoutSeconds": 0},
		"too much time":        {"method": "GET", "url": "http://127.0.0.1/", "timeoutSeconds": 301},
		"injection by a value": {"method": "GET", "url": "http://127.0.0.1/", "headers": map[string]string{"A": "b\r\nC: d"}},
		"injection by a name":  {"method": "GET", "url": "http://127.0.0.1/", "headers": map[string]string{"A: b\r\nC": "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := asking(t, true).request(t.Context(), requestJob(t, args))
			require.True(t, permanent(err), "%v", err)
			require.Equal(t, "bad_request", plugin.VerdictOf(err).Code)
			requireNoURL(t, err)
		})
	}
}

// requireNoURL checks that the path /way and the query ?key=SECRET are not in an error.
func requireNoURL(t *testing.T, err error) {
	t.Helper()
	require.NotContains(t, strings.ToLower(err.Error()), "/way")
	require.NotContains(t, strings.ToLower(err.Error()), "secret")
}

// What is wrong stays in the error; where the server sent us, or what it repeats, does not.
func TestAnErrorDoesNotTellWhereTheRequestWent(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"a redirect that cannot be":    {"HTTP/1.1 302 Found\r\nLocation: /way/%zz?key=SECRET\r\n\r\n", "failed to parse Location header …"},
		"a redirect to another scheme": {"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/way?key=SECRET\r\n\r\n", "unsupported protocol scheme …"},
		"a redirect to no port":        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/way?key=SECRET\r\n\r\n", "invalid port"},
		"an echo":                      {"GET /way?key=SECRET HTTP/1.1\r\n\r\n", "malformed HTTP status code …"},
		"an echo for a reason":         {"HTTP/1.1 503 Nothing at /way?key=SECRET\r\n\r\n", "the server answered 503 Service Unavailable"},
		"a status without a name":      {"HTTP/1.1 599 Nothing at /way?key=SECRET\r\n\r\n", "the server answered 599"},
		"an echo in a header":          {"HTTP/1.1 200 OK\r\nGET /way?key=SECRET\r\n\r\n", "malformed MIME header"},
		"an echo in a trailer": {
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\nGET /way?key=SECRET\r\n\r\n", "read the response: malformed MIME header",
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := serving(t, func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = io.WriteString(conn, c.answer)
					_ = conn.Close()
				}
			})
			_, err := asking(t, true).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url + "/way?key=SECRET"}))
			require.ErrorContains(t, err, c.want)
			require.False(t, permanent(err))
			requireNoURL(t, err)
		})
	}
}

func TestASlowServerIsLeftInTime(t *testing.T) {
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := asking(t, true).request(t.Context(), requestJob(t, map[string]any{"method": "GET", "url": url, "timeoutSeconds": 0.05}))
	require.ErrorContains(t, err, "deadline exceeded")
	require.False(t, permanent(err))
}
