package api_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestPagesCallTheAPIAsTheirCaller(t *testing.T) {
	server, _ := guarded(t, guard.Config{Access: accessFor(false)}, busy)
	for name, want := range map[string]int{
		"basic": 200, "token observe": 200, "token operate": 200,
		"token read": 403, "token submit": 403, "token observe of acme": 200, // which leads it to the jobs
	} {
		require.Equal(t, want, callRoute(t, server, "GET /ui/", who[name].header).status, name)
	}
	require.Equal(t, 200, callRoute(t, server, "GET /ui/settings", who["token read"].header).status)
	require.Equal(t, 403, callRoute(t, server, "GET /ui/workers", who["token observe of acme"].header).status)
	for path, want := range map[string]int{"/ui/": 303, "/ui/settings": 303, "/ui/login/x": 303, "/ui/login": 200, "/ui/assets/x.js": 404} {
		answer := send(server.Config.Handler, "GET", path, "", "Host: localhost")
		require.Equal(t, want, answer.Code, "%s needs a login, even on this machine", path)
		if want == 303 {
			require.Contains(t, answer.Header().Get("Location"), "/ui/login?next=%2Fui%2F")
		}
	}
}

func TestTheUICanBeLeftOut(t *testing.T) {
	without := api.New(api.Config{Jobs: newLedger(), Log: slog.New(slog.DiscardHandler), NoUI: true})
	answer := send(without, "GET", "/ui/", "")
	require.Equal(t, 404, answer.Code)
	require.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
	require.Empty(t, answer.Header().Get("Content-Security-Policy"))
}

func TestPagesAreObservedAsOneRoute(t *testing.T) {
	var seen []string
	l := newLedger()
	h := api.New(api.Config{
		Jobs: l, Operations: l, Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Second, MaxBodyBytes: 1 << 20,
		Observe: func(route, method string, status int, _ time.Duration) {
			seen = append(seen, fmt.Sprintf("%s %s %d", route, method, status))
		},
	})
	for _, path := range []string{"/ui/", "/ui/settings", "/ui/nothing/at/all"} {
		send(h, "GET", path, "")
	}
	send(h, "HEAD", "/ui/settings", "")
	require.Equal(t, []string{"/ui/* GET 200", "/ui/* GET 200", "/ui/* GET 404", "/ui/* HEAD 200"}, seen)
}

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	h := newAPI(t, newLedger())
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example", "Origin: null"} {
		answer := send(h, "POST", "/ui/settings", "every=2", header, "Content-Type: application/x-www-form-urlencoded")
		require.Equal(t, 403, answer.Code, header)
		require.Equal(t, "text/html; charset=utf-8", answer.Header().Get("Content-Type"))
		require.Empty(t, answer.Header().Get("Set-Cookie"))
	}
	own := send(h, "POST", "/ui/settings", "every=2", "Origin: http://example.com", "Content-Type: application/x-www-form-urlencoded")
	require.Equal(t, 303, own.Code, "the Host of the test is example.com")
}

func TestTheOverviewNeedsNoFreshFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // No reading goes on when the page has appeared.
		l := newLedger()
		h := undocumented(l)
		require.Equal(t, 200, send(h, "GET", "/ui/", "").Code)
		l.fails = job.ErrUnavailable
		answer := send(h, "GET", "/ui/", "")
		require.Equal(t, 200, answer.Code)
		require.Equal(t, 503, send(h, "GET", "/metrics", "").Code)
	})
}

func TestAGateTellsABrowserWhatItWaitsFor(t *testing.T) {
	answer := send(api.NewGate("the server is waiting for its database"), "GET", "/ui/", "")
	require.Equal(t, 503, answer.Code)
	require.Equal(t, "text/html; charset=utf-8", answer.Header().Get("Content-Type"))
	require.Contains(t, answer.Body.String(), "The server is waiting for its database.")
	require.Contains(t, answer.Body.String(), `data-retry="5"`)
}
