package ui_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// memory keeps logins and acts.
type memory struct {
	mu     sync.Mutex
	logins map[[32]byte]job.Login
	acts   []job.Act
	err    error
}

func (m *memory) put(l job.Login) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logins[l.Digest] = l
	return m.err
}

func (m *memory) find(digest [32]byte, remove bool) (job.Login, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, found := m.logins[digest]
	if remove {
		delete(m.logins, digest)
	}
	if m.err == nil && !found {
		return l, job.ErrNoLogin
	}
	return l, m.err
}

func (m *memory) BeginSession(_ context.Context, l job.Login) error { return m.put(l) }
func (m *memory) MakeLink(_ context.Context, l job.Login) error     { return m.put(l) }
func (m *memory) Session(_ context.Context, digest [32]byte) (job.Login, error) {
	return m.find(digest, false)
}

func (m *memory) TakeLink(_ context.Context, digest [32]byte) (job.Login, error) {
	return m.find(digest, true)
}

func (m *memory) EndSession(_ context.Context, digest [32]byte) error {
	_, _ = m.find(digest, true)
	return m.err
}

func (m *memory) Acts(context.Context, job.ActFilter) ([]job.Act, error) { return nil, nil }
func (m *memory) RecordAct(_ context.Context, act job.Act) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acts = append(m.acts, act)
	return nil
}

// loginPages is the UI with sessions.
type loginPages struct {
	*pages
	*memory

	sessions *guard.Sessions
}

func newLoginPages() *loginPages { return newLoginPagesOf(nil) }

func newLoginPagesOf(cells ui.Cells) *loginPages {
	g := guard.New(guard.Config{Log: slog.New(slog.DiscardHandler), Access: &guard.Access{
		User: "admin", Password: guard.DigestOf("secret"), Closed: true,
		Tokens: []guard.Token{
			{Name: "viewer", Digest: guard.DigestOf("viewer-token"), Scopes: []guard.Scope{guard.Observe}},
			{Name: "client", Digest: guard.DigestOf("client-token"), Scopes: []guard.Scope{guard.Submit}},
		},
	}})
	kept := &memory{logins: map[[32]byte]job.Login{}}
	sessions := guard.NewSessions(g, kept)
	api := &fakeAPI{answers: healthy()}
	site := ui.New(ui.Config{
		API: api, Guard: g, Sessions: sessions, Acts: audit.NewRecorder(kept, slog.New(slog.DiscardHandler), ""), Log: slog.New(slog.DiscardHandler),
		Version: "test", MaxFormBytes: 1 << 20, Now: func() time.Time { return noon }, Cells: cells,
	})
	refuse := func(w http.ResponseWriter, status int, detail string) {
		w.Header().Set("Content-Type", v1.ProblemMedia)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v1.NewProblem(status, detail))
	}
	return &loginPages{&pages{ui.Frame(g.Client(sessions.Recognise(refuse)(g.Admit(refuse)(site)))), api}, kept, sessions}
}

// cookieOf is the session that an answer begins.
func cookieOf(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	for _, cookie := range w.Result().Cookies() {
		if cookie.Name == guard.SessionCookie && cookie.MaxAge > 0 {
			return "Cookie: " + cookie.Name + "=" + cookie.Value
		}
	}
	require.Fail(t, "no session was begun", w.Body.String())
	return ""
}

func TestSomebodyLogsInAndOut(t *testing.T) {
	p := newLoginPages()
	w := p.get("/ui/settings?x=1")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/login?next=%2Fui%2Fsettings%3Fx%3D1", w.Header().Get("Location"))
	w = p.get(w.Header().Get("Location"))
	require.Equal(t, 200, w.Code)
	requireGolden(t, "login", w)
	require.NotContains(t, w.Body.String(), "<nav", "there is nowhere to go")

	w = p.post("/ui/login", "user", "admin", "password", "secret", "next", "/ui/settings?x=1")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/settings?x=1", w.Header().Get("Location"))
	session := cookieOf(t, w)
	w = p.get("/ui/settings", session)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `</span>admin</p>`)
	require.Contains(t, w.Body.String(), `action="/ui/logout"`)
	require.Equal(t, 303, p.get("/ui/login", session).Code, "nothing to do there")

	r := httptest.NewRequest(http.MethodPost, "/ui/logout", nil)
	w = p.do(r, session)
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/login", w.Header().Get("Location"))
	require.Equal(t, 303, p.get("/ui/settings", session).Code, "the cookie was stolen before")
	require.Equal(t, []string{"session.begin admin done", "session.end admin done"}, p.record())
}

// record are the acts that were written down.
func (p *loginPages) record() (texts []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, act := range p.acts {
		texts = append(texts, strings.Join([]string{act.Action, act.Actor, act.Result}, " "))
	}
	return texts
}

func TestATokenLogsIn(t *testing.T) {
	p := newLoginPages()
	session := cookieOf(t, p.post("/ui/login", "token", " viewer-token "))
	require.Contains(t, p.get("/ui/settings", session).Body.String(), `</span>token viewer</p>`)
}

func TestALoginSaysWhyItWasRefused(t *testing.T) {
	p := newLoginPages()
	w := p.post("/ui/login", "user", "admin", "password", "canary-password", "next", "/ui/settings")
	require.Equal(t, 401, w.Code)
	require.Empty(t, w.Header().Get("WWW-Authenticate"), "browsers would open a window")
	requireGolden(t, "login-refused", w)
	w = p.post("/ui/login", "token", "client-token")
	require.Equal(t, 403, w.Code)
	require.Contains(t, w.Body.String(), "they lack the scope observe")
	p.err = job.ErrUnavailable
	w = p.post("/ui/login", "token", "viewer-token")
	require.Equal(t, 503, w.Code)
	p.err = nil
	for range 30 {
		w = p.post("/ui/login", "token", "canary-token")
		require.NotContains(t, w.Body.String(), "canary")
	}
	require.Equal(t, 429, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Equal(t, 429, p.post("/ui/login", "token", "viewer-token").Code)
	require.Equal(t, "session.refused  refused: The credentials are wrong.", p.record()[0])
	require.Equal(t, "session.refused token client refused: These credentials are not for the UI: they lack the scope observe.", p.record()[1])
	require.NotContains(t, strings.Join(p.record(), ""), "canary")
}

func TestALoginLeadsToNoOtherSite(t *testing.T) {
	for next, want := range map[string]string{
		"/ui/jobs?state=dead":   "/ui/jobs?state=dead",
		"":                      "/ui/",
		"/jobs":                 "/ui/",
		"//evil.example":        "/ui/",
		"//evil.example/ui/":    "/ui/",
		"https://evil.example/": "/ui/",
		"https:/ui/":            "/ui/",
		`/\evil.example`:        "/ui/",
		`/ui/\evil.example`:     "/ui/",
		"\\\\evil.example":      "/ui/",
		"javascript:alert(1)":   "/ui/",
		"/ui/\r\nSet-Cookie: x": "/ui/",
		"/uix":                  "/ui/",
		"evil.example/ui/":      "/ui/",
		"/ui/..//evil.example":  "/ui/",
		"/ui/../jobs":           "/ui/",
		"/ui/%2e%2e/jobs":       "/ui/",
		"\t//evil.example":      "/ui/",
		"/ui@evil.example":      "/ui/",
	} {
		w := newLoginPages().post("/ui/login", "token", "viewer-token", "next", next)
		require.Equal(t, 303, w.Code)
		require.Equal(t, want, w.Header().Get("Location"), next)
		to, err := url.Parse(w.Header().Get("Location"))
		require.NoError(t, err)
		require.Empty(t, to.Host+to.Scheme)
	}
}

func TestALinkIsUsedByItsButtonOnly(t *testing.T) {
	p := newLoginPages()
	code := p.link(t)
	for range 3 {
		w := p.get("/ui/link?code=" + code)
		require.Equal(t, 200, w.Code, "whoever looks ahead does not use it up")
		require.Contains(t, w.Body.String(), `name="code" value="`+code+`"`)
	}
	w := p.post("/ui/link", "code", code)
	require.Equal(t, 303, w.Code)
	require.Contains(t, p.get("/ui/settings", cookieOf(t, w)).Body.String(), `</span>token viewer</p>`)
	w = p.post("/ui/link", "code", code)
	require.Equal(t, 401, w.Code)
	require.Contains(t, w.Body.String(), "The link was used before")
	requireGolden(t, "link", p.get("/ui/link?code=CODE"))
}

// link makes a link for the viewer.
func (p *loginPages) link(t *testing.T) (code string) {
	t.Helper()
	var err error
	session := cookieOf(t, p.post("/ui/login", "token", "viewer-token"))
	inside := p.sessions.Recognise(nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		code, err = p.sessions.Link(r.Context())
	}))
	(&pages{inside, p.api}).get("/ui/", session)
	require.NoError(t, err)
	return code
}
