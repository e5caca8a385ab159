package ui_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write the goldens anew")

// noon is the time of all pages in tests.
var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// fakeAPI answers calls of pages, such as "GET /debug/jobs", with a value as JSON, or with a
// *v1.Problem. It keeps the calls that change something.
type fakeAPI struct {
	answers map[string]any
	mu      sync.Mutex
	sent    []string
	calls   map[string]int
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	call := r.Method + " " + r.URL.EscapedPath()
	a.mu.Lock()
	if a.calls == nil {
		a.calls = map[string]int{}
	}
	a.calls[call]++
	if r.Method != http.MethodGet {
		a.sent = append(a.sent, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
	}
	answer, known := a.answers[call]
	a.mu.Unlock()
	if compute, ok := answer.(func(*http.Request) any); ok {
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer = compute(r)
	}
	if !known {
		answer = v1.NewProblem(http.StatusNotFound, "no such resource")
	}
	w.Header().Set("Content-Type", "application/json")
	if problem, ok := answer.(*v1.Problem); ok {
		w.Header().Set("Content-Type", v1.ProblemMedia)
		w.WriteHeader(problem.Status)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// pages is the UI over a fake API.
type pages struct {
	http.Handler
	api *fakeAPI
}

// newPages is the UI for a caller who may do everything.
func newPages(answers map[string]any) *pages { return newPagesFor(nil, answers) }

// newPagesFor is the UI behind a guard. Callers show their credentials with each request.
// They wait longer for figures than any machine needs for the fake API.
func newPagesFor(g *guard.Guard, answers map[string]any) *pages {
	return newPagesWithin(time.Minute, g, answers)
}

// newPagesWithin is newPagesFor pages that wait so long for figures, or as the product does for 0,
// which only a test with a clock of its own can.
func newPagesWithin(patience time.Duration, g *guard.Guard, answers map[string]any) *pages {
	api := &fakeAPI{answers: answers}
	site := ui.New(ui.Config{
		API: api, Guard: g, Log: slog.New(slog.DiscardHandler), Version: "test", MaxFormBytes: 1 << 20,
		Now:         func() time.Time { return noon },
		CountWithin: patience, ReadWithin: patience,
	})
	refuse := func(w http.ResponseWriter, status int, detail string) {
		w.Header().Set("Content-Type", v1.ProblemMedia)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v1.NewProblem(status, detail))
	}
	return &pages{ui.Frame(g.Client(g.Admit(refuse)(site))), api}
}

// get returns the answer to a request with headers "Name: value".
func (p *pages) get(path string, headers ...string) *httptest.ResponseRecorder {
	return p.do(httptest.NewRequest(http.MethodGet, path, nil), headers...)
}

// post sends a form of names and values.
func (p *pages) post(path string, pairs ...string) *httptest.ResponseRecorder {
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return p.do(httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode())), "Content-Type: application/x-www-form-urlencoded")
}

func (p *pages) do(r *http.Request, headers ...string) *httptest.ResponseRecorder {
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// requireGolden compares the content of a page, without the layout, with testdata/NAME.html.
func requireGolden(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	_, got, found := strings.Cut(w.Body.String(), `<main id="main" tabindex="-1">`)
	require.True(t, found, w.Body.String())
	got, _, _ = strings.Cut(got, "</main>")
	requireGoldenText(t, name, got)
}

func requireGoldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".html")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
