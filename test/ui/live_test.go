package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/stretchr/testify/require"
)

// polls are the requests for parts of pages after the n-th request.
func (b *tab) polls(n int) (polls int) {
	for _, request := range b.since(n) {
		if _, ok := request.Request.Headers["Hf-Fragment"]; ok {
			polls++
		}
	}
	return polls
}

// hide says that the tab is hidden, or is seen again, as when another tab covers it.
func (b *tab) hide(hidden bool) {
	b.t.Helper()
	value[bool](b, `Object.defineProperty(document, "hidden", {configurable: true, get: () => `+map[bool]string{true: "true", false: "false"}[hidden]+`});
		Object.defineProperty(document, "visibilityState", {configurable: true, get: () => document.hidden ? "hidden" : "visible"});
		document.dispatchEvent(new Event("visibilitychange"))`)
}

// interval is longer than pages wait from one poll to the next.
const interval = 5 * time.Second

func TestAHiddenTabAsksForNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/")
	n := b.sent()
	require.Eventually(t, func() bool { return b.polls(n) >= 2 }, patience, glance, "the page is live")
	b.hide(true)
	n = b.sent()
	require.Never(t, func() bool { return b.polls(n) > 1 }, interval, glance, "one may have been under way")
	n = b.sent()
	b.hide(false)
	require.Eventually(t, func() bool { return b.polls(n) >= 2 }, patience, glance, "it goes on")
}

func TestNeverTwoPollsAreUnderWay(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/")
	parts := value[int](b, `document.querySelectorAll("[data-live]").length`)
	require.Positive(t, parts)
	// The browser may still ask for an icon.
	polls := []*fetch.RequestPattern{{URLPattern: "*", ResourceType: network.ResourceTypeFetch}}
	order(b, fetch.Enable, fetch.EnableParams{Patterns: polls})
	first := b.held(1)
	require.Never(t, func() bool { return b.holding() > 1 }, interval, glance, "the next waits for the answer")
	order(b, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: first})
	b.held(2)
	order(b, fetch.Disable, cdp.Empty{})
}

// holding is how many requests the test has held back so far.
func (b *tab) holding() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.paused)
}

// held waits until the n-th request is held back.
func (b *tab) held(n int) fetch.RequestID {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.holding() >= n }, patience, glance)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.paused[n-1]
}

func TestThePageAnswersWithoutTheDatabaseAndRecovers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server, end, err := startPostgres(ctx)
	require.NoError(t, err)
	s := sceneOn(t, database(t, server.server.URL()))
	t.Cleanup(func() { require.NoError(t, end()) })
	b := newTab(t, s.origin)
	b.expect("503")
	b.login(s)
	b.open("/ui/")
	fine := b.text("main")

	require.NoError(t, server.stop(ctx))
	within(t, soon, "a page without its database", func() { b.open("/ui/") })
	require.NotContains(t, b.text("main"), "Internal Server Error")
	b.await(`/database/i.test(document.querySelector("main").innerText)`, "it says what is wrong")
	require.Contains(t, b.text("main"), strings.Fields(fine)[0])

	require.NoError(t, server.start(ctx))
	b.await(`!/database has not answered|database does not answer/i.test(document.querySelector("main").innerText)`, "it recovers by itself")
}
