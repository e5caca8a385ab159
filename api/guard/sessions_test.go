package guard_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const observeToken = "canary-observe-token"

// observers are callers of whom most may see pages.
func observers() *guard.Access {
	access := everybody()
	access.Tokens = append(access.Tokens, guard.Token{Name: "viewer", Digest: guard.DigestOf(observeToken), Scopes: []guard.Scope{guard.Observe}})
	return access
}

// book is a Memory that counts how often a session is begun and looked up, and can fail.
type book struct {
	*guard.Memory

	mu            sync.Mutex
	begun, looked int
	// err is what every method returns, unless it is nil.
	err error
}

func newBook() *book { return &book{Memory: guard.NewMemory()} }

func (b *book) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *book) BeginSession(ctx context.Context, l job.Login) error {
	b.mu.Lock()
	b.begun++
	b.mu.Unlock()
	return cmp.Or(b.failure(), b.Memory.BeginSession(ctx, l))
}

func (b *book) MakeLink(ctx context.Context, l job.Login) error {
	return cmp.Or(b.failure(), b.Memory.MakeLink(ctx, l))
}

func (b *book) Session(ctx context.Context, digest [32]byte) (job.Login, error) {
	b.mu.Lock()
	b.looked++
	b.mu.Unlock()
	l, err := b.Memory.Session(ctx, digest)
	return l, cmp.Or(b.failure(), err)
}

func (b *book) EndSession(ctx context.Context, digest [32]byte) error {
	return cmp.Or(b.failure(), b.Memory.EndSession(ctx, digest))
}

func (b *book) TakeLink(ctx context.Context, digest [32]byte) (job.Login, error) {
	l, err := b.Memory.TakeLink(ctx, digest)
	return l, cmp.Or(b.failure(), err)
}

func (b *book) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// house is a process that serves pages and other paths.
type house struct {
	*guard.Sessions
	handler http.Handler
}

// processWith is a process with such a configuration, beside others on the same database.
func processWith(config guard.Config, logins *book) house {
	config.Log = slog.New(slog.DiscardHandler)
	g := guard.New(config)
	refuse := func(w http.ResponseWriter, status int, detail string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, detail)
	}
	h := house{Sessions: guard.NewSessions(g, logins)}
	h.handler = g.Client(h.Recognise(refuse)(g.Admit(refuse)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ui/jobs":
			_, _ = io.WriteString(w, guard.Name(r.Context())+" "+guard.Tenant(r.Context()))
		case "/link":
			code, err := h.Link(r.Context())
			if err != nil {
				guard.RefuseAs(w, err, refuse)
				return
			}
			_, _ = io.WriteString(w, code)
		default:
			_, _ = io.WriteString(w, "not a page")
		}
	}))))
	return h
}

func process(access *guard.Access, logins *book) house {
	return processWith(guard.Config{Access: access}, logins)
}

func request(cookie *http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/ui/login", nil)
	r.RemoteAddr = netip.MustParseAddrPort("192.0.2.1:4711").String()
	if cookie != nil {
		r.AddCookie(cookie)
	}
	return r
}

// logIn returns the cookie of somebody who has logged in.
func (h house) logIn(t *testing.T, shown guard.Credentials) *http.Cookie {
	t.Helper()
	w := httptest.NewRecorder()
	_, err := h.Begin(w, request(nil), shown)
	require.NoError(t, err)
	cookies := w.Result().Cookies()
	require.Len(t, cookies, 1)
	return cookies[0]
}

// see asks for a path with a cookie.
func (h house) see(path string, cookie *http.Cookie) *httptest.ResponseRecorder {
	r := request(cookie)
	r.Method, r.URL.Path = http.MethodGet, path
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

func TestACookieOpensThePagesAndNothingElse(t *testing.T) {
	for shown, want := range map[guard.Credentials]string{
		{User: "admin", Password: password}: "admin ",
		{Token: observeToken}:               "token viewer ",
		{Token: acmeToken}:                  "token acme acme",
	} {
		h := process(observers(), newBook())
		cookie := h.logIn(t, shown)
		require.Equal(t, guard.SessionCookie, cookie.Name)
		require.Equal(t, "/ui", cookie.Path)
		require.True(t, cookie.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
		require.False(t, cookie.Secure, "it came without TLS")
		require.Equal(t, 12*60*60, cookie.MaxAge)

		answer := h.see("/ui/jobs", cookie)
		require.Equal(t, 200, answer.Code)
		require.Equal(t, want, answer.Body.String())
		for _, path := range []string{"/jobs", "/debug/workers", "/metrics", "/uix", "/", "/healthz"} {
			require.Equal(t, 401, h.see(path, cookie).Code, path)
		}
		require.Equal(t, 303, h.see("/ui/jobs", nil).Code)
		require.Equal(t, 303, h.see("/ui/jobs", &http.Cookie{Name: guard.SessionCookie, Value: "made up"}).Code)
	}
	open := everybody()
	open.Closed = false
	require.Equal(t, 401, process(open, newBook()).see("/jobs", &http.Cookie{Name: guard.SessionCookie, Value: "x"}).Code, "also where no credentials are needed")
}

func TestTheCookieIsSecureIfTheRequestCameByTLS(t *testing.T) {
	h := processWith(guard.Config{Access: observers(), TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}, newBook())
	for peer, want := range map[string]bool{"192.0.2.1:4711": true, "192.0.2.2:4711": false} {
		r := request(nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-Proto", "https")
		w := httptest.NewRecorder()
		_, err := h.Begin(w, r, guard.Credentials{Token: observeToken})
		require.NoError(t, err)
		require.Equal(t, want, w.Result().Cookies()[0].Secure, peer)
	}
}

func TestASessionEndsWithWhatItWasBegunWith(t *testing.T) {
	admin, token := guard.Credentials{User: "admin", Password: password}, guard.Credentials{Token: observeToken}
	changed := func(change func(*guard.Access)) *guard.Access {
		access := observers()
		change(access)
		return access
	}
	last := len(observers().Tokens) - 1
	for name, c := range map[string]struct {
		shown guard.Credentials
		now   *guard.Access
		want  string // empty if the session has ended
	}{
		"the same configuration":  {admin, observers(), "admin "},
		"another password":        {admin, changed(func(a *guard.Access) { a.Password = guard.DigestOf("other") }), ""},
		"another user":            {admin, changed(func(a *guard.Access) { a.User = "root" }), ""},
		"no password any more":    {admin, changed(func(a *guard.Access) { a.NoPassword = true }), ""},
		"the same token":          {token, observers(), "token viewer "},
		"the token is removed":    {token, changed(func(a *guard.Access) { a.Tokens = a.Tokens[:last] }), ""},
		"another token, its name": {token, changed(func(a *guard.Access) { a.Tokens[last].Digest = guard.DigestOf("other") }), ""},
		"the token, another name": {token, changed(func(a *guard.Access) { a.Tokens[last].Name = "other" }), ""},
		"the token of a tenant":   {token, changed(func(a *guard.Access) { a.Tokens[last].Tenant = "acme" }), "token viewer acme"},
		"a user named like it":    {token, changed(func(a *guard.Access) { a.Tokens = a.Tokens[:last]; a.User = "token viewer" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			logins := newBook()
			cookie := process(observers(), logins).logIn(t, c.shown)
			answer := process(c.now, logins).see("/ui/jobs", cookie)
			if c.want == "" {
				require.Equal(t, 303, answer.Code)
				return
			}
			require.Equal(t, 200, answer.Code)
			require.Equal(t, c.want, answer.Body.String())
		})
	}
}

func TestBrowsersAreSentToLogInAndOthersAreRefused(t *testing.T) {
	h := process(observers(), newBook())
	r := request(nil)
	r.Method, r.URL.Path, r.URL.RawQuery = http.MethodGet, "/ui/jobs", "state=dead&q=a+b"
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/login?next=%2Fui%2Fjobs%3Fstate%3Ddead%26q%3Da%2Bb", w.Header().Get("Location"))
	r.Header.Set("Hf-Fragment", "live-jobs")
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		r.Method = method
		w = httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		require.Equal(t, 401, w.Code)
		require.Empty(t, w.Header().Get("WWW-Authenticate"), "browsers would open a window")
	}
	for path, want := range map[string]int{
		"/ui/login": 200, "/ui/link": 200, "/ui/logout": 200, "/ui/assets/app.css": 200, "/ui": 303, "/ui/": 303, "/ui/loginx": 303, "/ui/login/x": 303, "/ui/assets": 303,
	} {
		require.Equal(t, want, h.see(path, nil).Code, path)
	}
	r.Method = http.MethodGet
	for credentials, want := range map[string]int{bearer(observeToken): 200, bearer(wrongToken): 401} {
		r.Header.Set("Authorization", strings.TrimPrefix(credentials, "Authorization: "))
		w = httptest.NewRecorder()
		h.handler.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, "credentials in a header work as ever")
	}
}

func TestALogoutEndsTheSessionEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newBook()
		here, there := process(observers(), logins), process(observers(), logins)
		cookie := here.logIn(t, guard.Credentials{Token: observeToken})
		require.Equal(t, 200, there.see("/ui/jobs", cookie).Code)
		w := httptest.NewRecorder()
		require.NoError(t, here.End(w, request(cookie)))
		require.Negative(t, w.Result().Cookies()[0].MaxAge, "the browser forgets it")
		require.Equal(t, 303, here.see("/ui/jobs", cookie).Code, "at once where it was asked")
		time.Sleep(2 * time.Second)
		require.Equal(t, 303, there.see("/ui/jobs", cookie).Code, "soon everywhere")
	})
}

func TestASessionExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := process(observers(), newBook())
		cookie := h.logIn(t, guard.Credentials{Token: observeToken})
		time.Sleep(guard.SessionLasts - time.Second)
		require.Equal(t, 200, h.see("/ui/jobs", cookie).Code)
		time.Sleep(time.Second)
		require.Equal(t, 303, h.see("/ui/jobs", cookie).Code, "although the last answer of the database is younger than two seconds")
	})
}

func TestALoginReplacesTheSessionOfTheBrowser(t *testing.T) {
	h := process(observers(), newBook())
	before := h.logIn(t, guard.Credentials{Token: observeToken})
	_, err := h.Begin(httptest.NewRecorder(), request(before), guard.Credentials{User: "admin", Password: password})
	require.NoError(t, err)
	require.Equal(t, 303, h.see("/ui/jobs", before).Code)
}

func TestPollingCostsALookupEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newBook()
		h := process(observers(), logins)
		cookie := h.logIn(t, guard.Credentials{Token: observeToken})
		var tabs sync.WaitGroup
		for range 10 {
			tabs.Go(func() {
				for range 100 {
					require.Equal(t, 200, h.see("/ui/jobs", cookie).Code)
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		tabs.Wait()
		require.LessOrEqual(t, logins.looked, 6)
	})
}

func TestASessionOutlastsTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newBook()
		h := process(observers(), logins)
		cookie := h.logIn(t, guard.Credentials{Token: observeToken})
		require.Equal(t, 200, h.see("/ui/jobs", cookie).Code)
		logins.fail(job.ErrUnavailable)
		for range 60 {
			require.Equal(t, 200, h.see("/ui/jobs", cookie).Code)
			time.Sleep(time.Minute)
		}
		require.Equal(t, 503, h.see("/ui/jobs", cookie).Code, "after an hour nobody knows")
		require.Equal(t, 503, h.see("/ui/jobs", &http.Cookie{Name: guard.SessionCookie, Value: "never seen"}).Code)
		logins.fail(nil)
		time.Sleep(2 * time.Second)
		require.Equal(t, 200, h.see("/ui/jobs", cookie).Code)
	})
}

func TestWrongCredentialsOfALoginAreThrottledLikeOthers(t *testing.T) {
	h := process(observers(), newBook())
	for _, shown := range []guard.Credentials{
		{},
		{User: "admin"},
		{User: "admin", Password: "wrong"},
		{User: "root", Password: password},
		{Token: wrongToken},
		{Token: password},
		{User: "admin", Password: observeToken},
	} {
		_, err := h.Begin(httptest.NewRecorder(), request(nil), shown)
		require.ErrorIs(t, err, guard.ErrWrongCredentials)
	}
	var throttled *guard.ThrottledError
	for range 24 {
		_, err := h.Begin(httptest.NewRecorder(), request(nil), guard.Credentials{Token: wrongToken})
		if errors.As(err, &throttled) {
			break
		}
	}
	_, err := h.Begin(httptest.NewRecorder(), request(nil), guard.Credentials{Token: observeToken})
	require.ErrorAs(t, err, &throttled, "right ones too")
	require.Positive(t, throttled.Wait)
	require.Contains(t, throttled.Error(), "too many wrong credentials; try again in ")
}

func TestWhoMayNotSeePagesGetsNoSession(t *testing.T) {
	logins := newBook()
	w := httptest.NewRecorder()
	ctx, err := process(observers(), logins).Begin(w, request(nil), guard.Credentials{Token: readToken})
	require.ErrorIs(t, err, guard.ErrForbidden)
	require.Contains(t, err.Error(), "scope observe")
	require.Equal(t, "token reader", guard.Name(ctx))
	require.Empty(t, w.Result().Cookies())
	require.Zero(t, logins.begun)
}

func TestMadeUpCookiesCountAsReads(t *testing.T) {
	logins := newBook()
	h := processWith(guard.Config{Access: observers(), PerMinute: map[guard.Limit]int{guard.Reads: 20}}, logins)
	for range 20 {
		require.Equal(t, 303, h.see("/ui/jobs", &http.Cookie{Name: guard.SessionCookie, Value: time.Now().String()}).Code)
	}
	require.Equal(t, 429, h.see("/ui/jobs", &http.Cookie{Name: guard.SessionCookie, Value: "another"}).Code)
	require.Equal(t, 20, logins.looked)
}

func TestALinkLogsInOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := newBook()
		here, there := process(observers(), logins), process(observers(), logins)
		code := link(t, here, bearer(observeToken))
		w := httptest.NewRecorder()
		ctx, err := there.Redeem(w, request(nil), code)
		require.NoError(t, err)
		require.Equal(t, "token viewer", guard.Name(ctx))
		require.Equal(t, 200, here.see("/ui/jobs", w.Result().Cookies()[0]).Code)
		_, err = here.Redeem(httptest.NewRecorder(), request(nil), code)
		require.ErrorIs(t, err, guard.ErrNoLink)

		late := link(t, here, basic("admin", password))
		time.Sleep(guard.LinkLasts)
		_, err = here.Redeem(httptest.NewRecorder(), request(nil), late)
		require.ErrorIs(t, err, guard.ErrNoLink)

		orphan := link(t, here, bearer(observeToken))
		_, err = process(everybody(), logins).Redeem(httptest.NewRecorder(), request(nil), orphan)
		require.ErrorIs(t, err, guard.ErrNoLink, "the token is gone")
	})
}

// link makes a link for the caller with these credentials, who has come to /link.
func link(t *testing.T, h house, credentials string) string {
	t.Helper()
	r := request(nil)
	r.URL.Path = "/link"
	name, value, _ := strings.Cut(credentials, ": ")
	r.Header.Set(name, value)
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
	return w.Body.String()
}

func TestEverybodyIsLoggedInIfThereAreNoCredentials(t *testing.T) {
	h := process(nil, newBook())
	require.True(t, h.Open())
	require.Equal(t, 200, h.see("/ui/jobs", nil).Code)
	require.Equal(t, 200, h.see("/ui/jobs", &http.Cookie{Name: guard.SessionCookie, Value: "of another server"}).Code)
	require.False(t, process(observers(), newBook()).Open())
	require.True(t, guard.NewSessions(nil, nil).Open())
}
