package ui

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// tab is a tab of an incognito window: it shares cookies with nobody. At the end of the test
// it must have asked no other server, and nothing must have gone wrong in it.
type tab struct {
	t      testing.TB
	ctx    context.Context
	close  context.CancelFunc
	origin string

	mu       sync.Mutex
	requests []*network.EventRequestWillBeSent
	answers  []*network.EventResponseReceived
	loaded   map[network.RequestID]float64 // bytes on the wire
	faults   []string
	// paused are requests that the test holds back.
	paused []fetch.RequestID
	// expected are parts of faults that the test provokes.
	expected []string
}

// newTab opens a tab, 1280 px wide, for pages of the server.
func newTab(t testing.TB, origin string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx, close: cancel, origin: origin, loaded: make(map[network.RequestID]float64)}
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.faults) > 0 {
			t.Errorf("in the browser:\n%s", strings.Join(b.faults, "\n"))
		}
	})
	require.NoError(t, chromedp.Listen(ctx, b.heard))
	order(b, network.Enable, network.EnableParams{})
	order(b, page.Enable, page.EnableParams{})
	order(b, log.Enable, cdp.Empty{})
	order(b, runtime.Enable, cdp.Empty{})
	order(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch})
	b.look(1280, "light")
	return b
}

// in is the tab for a part of the test.
func (b *tab) in(t testing.TB) *tab {
	b.t = t
	return b
}

// order sends the browser a command of its protocol.
func order[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	answer, err := chromedp.Call(ctx, command, params)
	require.NoError(b.t, err)
	return answer
}

// watch reports violations of the policy with their place, and what pages send.
const watch = `document.addEventListener("securitypolicyviolation", e =>
	console.error("violates the policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber + " " + e.sample))`

func (b *tab) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e)
		if at, err := url.Parse(e.Request.URL); err != nil || at.Scheme != "data" && at.Scheme != "blob" && at.Scheme+"://"+at.Host != b.origin {
			b.fault("a request to " + e.Request.URL)
		}
	case *network.EventResponseReceived:
		b.answers = append(b.answers, e)
		if e.Type == network.ResourceTypeDocument && e.Response.Headers["Content-Security-Policy"] != policy && strings.HasPrefix(e.Response.URL, b.origin+"/ui") {
			b.fault(fmt.Sprintf("the policy of %s is %v", e.Response.URL, e.Response.Headers["Content-Security-Policy"]))
		}
	case *fetch.EventRequestPaused:
		b.paused = append(b.paused, e.RequestID)
	case *network.EventLoadingFinished:
		b.loaded[e.RequestID] = e.EncodedDataLength
	case *page.EventJavascriptDialogOpening:
		b.fault("a dialog: " + e.Message)
	case *runtime.EventExceptionThrown:
		b.fault(fmt.Sprintf("thrown: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, arg := range e.Args {
				b.fault(fmt.Sprintf("console: %s %s", arg.Value, arg.Description))
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.fault(fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
		}
	}
}

// fault notes what went wrong, unless the test expects it.
func (b *tab) fault(what string) {
	for _, part := range b.expected {
		if strings.Contains(what, part) {
			return
		}
	}
	b.faults = append(b.faults, what)
}

// expect says that faults with this text are what the test is about.
func (b *tab) expect(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, part)
}

// run acts within the time that everything may take.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// look sets the width of the window, in px, and the theme.
func (b *tab) look(width int64, theme string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(width, 800))
	order(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// open goes to a path and waits until the page has loaded, and its jobs are counted.
func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.origin + path))
	for value[bool](b, `document.getElementById("counting") != null`) {
		b.run(chromedp.Navigate(b.origin + path))
	}
}

// counted waits until the page, which is live, has the numbers of its jobs.
func (b *tab) counted() {
	b.t.Helper()
	b.await(`!document.getElementById("counting")`, "its jobs are counted")
}

// path is that of the page, with its query.
func (b *tab) path() string {
	b.t.Helper()
	return value[string](b, "location.pathname + location.search")
}

// text is what people see of the elements.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf(`Array.from(document.querySelectorAll(%q), e => e.innerText).join("\n")`, selector))
}

// await waits until the expression is true.
func (b *tab) await(expression string, why ...any) {
	b.t.Helper()
	var last string
	require.Eventually(b.t, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		// While a page loads, there may be nothing to ask.
		yes, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err != nil {
			last = err.Error()
		}
		return err == nil && yes
	}, patience, glance, append([]any{expression + " " + last}, why...)...)
}

// follow acts so that another page loads, and waits until it has.
func (b *tab) follow(act func()) {
	b.t.Helper()
	value[bool](b, "window.before = true")
	act()
	b.await(`!window.before && document.readyState == "complete"`, "another page")
}

// click clicks on the first element that is visible, as a person would.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// keys types into the element.
func (b *tab) keys(selector, text string) {
	b.t.Helper()
	b.run(chromedp.SendKeys(chromedp.CSS(selector), text, chromedp.NodeVisible))
}

// value is that of a JavaScript expression, or of its promise.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, "%.200s", expression)
	return v
}

// since are the requests after the n-th.
func (b *tab) since(n int) []*network.EventRequestWillBeSent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*network.EventRequestWillBeSent(nil), b.requests[n:]...)
}

// sent is how many requests there were so far.
func (b *tab) sent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.requests)
}

// within fails unless something took at most so long.
func within(t testing.TB, most time.Duration, what string, act func()) {
	t.Helper()
	began := time.Now()
	act()
	require.Less(t, time.Since(began), most, what)
}

// login logs the operator in by the form.
func (b *tab) login(s *scene) {
	b.t.Helper()
	b.open("/ui/login")
	b.keys("#user", "admin")
	b.keys("#password", s.Password)
	b.follow(func() { b.keys("#password", kb.Enter) })
	require.NotContains(b.t, b.path(), "login", b.text("main"))
}
