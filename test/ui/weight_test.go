package ui

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/stretchr/testify/require"
)

// carried is what came over the wire since the n-th answer, in bytes: of assets, and of pages.
func (b *tab) carried(n int) (assets, pages float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, answer := range b.answers[n:] {
		switch {
		case answer.Response.FromDiskCache:
		case answer.Type == network.ResourceTypeDocument:
			pages += b.loaded[answer.RequestID]
		case strings.Contains(answer.Response.URL, "/ui/assets/"):
			assets += b.loaded[answer.RequestID]
		}
	}
	return assets, pages
}

func (b *tab) answered() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.answers)
}

func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	s, _ := full(t)
	b := newTab(t, s.origin)
	b.login(s)
	visited := b.walk(func(string) {})
	first, _ := b.carried(0)
	require.Positive(t, first)
	require.LessOrEqual(t, first, 60_000.0, "all assets of all pages")
	t.Logf("assets: %.0f bytes for %d pages", first, len(visited))
	for _, path := range visited {
		n := b.answered()
		b.open(path)
		again, page := b.carried(n)
		require.Zero(t, again, "assets again on %s", path)
		require.LessOrEqual(t, page, 25_000.0, path)
	}
}

// hidden text must stay text, wherever it is shown.
func TestTextOfJobsStaysText(t *testing.T) {
	t.Parallel()
	s, jobs := full(t)
	b := newTab(t, s.origin)
	b.login(s)
	b.walk(func(path string) {
		require.Empty(t, value[[]string](b, markup), path)
	})
	b.open("/ui/jobs/" + jobs["hostile"])
	require.Contains(t, b.text("main"), "<img src=x onerror=alert(1)>")
	require.Contains(t, b.text("main"), "<b>bold</b>")
	require.Contains(t, b.text("main"), "{{.}} ${7*7}")
	require.Empty(t, value[[]string](b, mirrored), "the marks turn round what follows them")
	b.open("/ui/jobs/" + jobs["large"])
	_, page := b.carried(b.answered() - 1)
	require.Less(t, page, 100_000.0, "a large payload is cut")
	require.Less(t, value[int](b, `document.documentElement.outerHTML.length`), 200_000)
}

// markup is what the tags and texts of the hostile job would be if they were not text.
const markup = `Array.from(document.querySelectorAll("[onerror], main script, main img[src=x], main b"))
	.filter(e => e.localName != "b" || e.textContent == "bold").map(e => e.outerHTML.slice(0, 200))`

// mirrored are elements with marks for right to left that affect the text around them.
const mirrored = `Array.from(document.querySelectorAll("main *")).filter(e =>
	[...e.childNodes].some(n => n.nodeType == Node.TEXT_NODE && /[\u202A-\u202E\u2066-\u2069]/.test(n.data)) &&
	!/isolate|plaintext/.test(getComputedStyle(e).unicodeBidi) && !/block$/.test(getComputedStyle(e).display)).map(e => e.outerHTML.slice(0, 200))`
