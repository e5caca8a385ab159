package guard_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// The secrets of these tests. They must appear only in requests.
const (
	password   = "canary-password"
	readToken  = "canary-read-token"
	acmeToken  = "canary-acme-token"
	wrongToken = "canary-wrong-token"
)

func everybody() *guard.Access {
	return &guard.Access{
		User: "admin", Password: guard.DigestOf(password),
		Tokens: []guard.Token{
			{Name: "reader", Digest: guard.DigestOf(readToken), Scopes: []guard.Scope{guard.Read}},
			{Name: "acme", Digest: guard.DigestOf(acmeToken), Scopes: guard.Scopes(), Tenant: "acme"},
		},
		Closed: true,
	}
}

// stage is a guard in front of a handler that counts n jobs against the limit and
// answers with the tenant.
type stage struct {
	handler http.Handler
	log     bytes.Buffer
}

func behind(config guard.Config, n int) *stage {
	s := &stage{}
	config.Log = slog.New(slog.NewJSONHandler(&s.log, nil))
	g := guard.New(config)
	refuse := func(w http.ResponseWriter, status int, detail string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, detail)
	}
	s.handler = g.Client(g.Admit(refuse)(g.Screen(refuse)(func(w http.ResponseWriter, r *http.Request) {
		allowance := g.Take(r.Context(), guard.Jobs, n)
		for name, values := range allowance.Header {
			w.Header()[name] = values
		}
		if !allowance.Allowed {
			refuse(w, http.StatusTooManyRequests, allowance.Detail)
			return
		}
		_, _ = io.WriteString(w, guard.Tenant(r.Context()))
	})))
	return s
}

// from makes a request of a peer; headers are "Name: value".
func (s *stage) from(peer, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(peer), 4711).String()
	r.Host = "127.0.0.1:8080"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func basic(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func bearer(token string) string { return "Authorization: Bearer " + token }

func TestCredentialsAreRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		headers []string
		want    int
	}{
		"none":                {nil, 401},
		"user and password":   {[]string{basic("admin", password)}, 200},
		"wrong password":      {[]string{basic("admin", password+"x")}, 401},
		"wrong user":          {[]string{basic("root", password)}, 401},
		"empty password":      {[]string{basic("admin", "")}, 401},
		"no base64":           {[]string{"Authorization: Basic !"}, 401},
		"token":               {[]string{bearer(readToken)}, 200},
		"scheme in capitals":  {[]string{"Authorization: BEARER " + readToken}, 200},
		"two blanks":          {[]string{"Authorization: Bearer  " + readToken}, 200},
		"wrong token":         {[]string{bearer(wrongToken)}, 401},
		"token as password":   {[]string{basic("admin", readToken)}, 401},
		"password as token":   {[]string{bearer(password)}, 401},
		"the digest itself":   {[]string{bearer(fmt.Sprintf("%x", guard.DigestOf(readToken)))}, 401},
		"empty token":         {[]string{bearer("")}, 401},
		"empty header":        {[]string{"Authorization: "}, 401},
		"unknown scheme":      {[]string{"Authorization: Digest " + readToken}, 401},
		"token alone":         {[]string{"Authorization: " + readToken}, 401},
		"token of 1 KiB":      {[]string{bearer(strings.Repeat("x", 1024))}, 401},
		"longer than 1 KiB":   {[]string{bearer(strings.Repeat("x", 1025))}, 401},
		"two headers":         {[]string{bearer(readToken), bearer(readToken)}, 401},
		"right one and wrong": {[]string{bearer(wrongToken), bearer(readToken)}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			answer := behind(guard.Config{Access: everybody()}, 1).from("192.0.2.1", "/jobs", c.headers...)
			require.Equal(t, c.want, answer.Code)
			if c.want == 401 {
				require.Equal(t, []string{`Basic realm="holdfast", charset="UTF-8"`, `Bearer realm="holdfast"`},
					answer.Header()["Www-Authenticate"])
			}
		})
	}
}

func TestTokensUpToOneKiBAreLookedAt(t *testing.T) {
	access := everybody()
	for length, want := range map[int]int{1024: 200, 1025: 401} {
		token := strings.Repeat("x", length)
		access.Tokens[0].Digest = guard.DigestOf(token)
		require.Equal(t, want, behind(guard.Config{Access: access}, 1).from("192.0.2.1", "/jobs", bearer(token)).Code)
	}
}

func TestWithoutAPasswordNoneIsRight(t *testing.T) {
	access := everybody()
	access.Password, access.NoPassword = guard.DigestOf(""), true
	require.Equal(t, 401, behind(guard.Config{Access: access}, 1).from("192.0.2.1", "/jobs", basic("admin", "")).Code)
}

func TestProbesNeedNoCredentialsButRefuseWrongOnes(t *testing.T) {
	s := behind(guard.Config{Access: everybody()}, 1)
	for _, path := range []string{"/healthz", "/readyz"} {
		require.Equal(t, 200, s.from("192.0.2.1", path).Code)
		require.Equal(t, 401, s.from("192.0.2.1", path, bearer(wrongToken)).Code)
	}
	for _, path := range []string{"/healthz/", "/healthz/x", "/healthzz", "/HEALTHZ"} {
		require.Equal(t, 401, s.from("192.0.2.1", path).Code, path)
	}
}

func TestAnOpenGuardStillKeepsOperatorsPaths(t *testing.T) {
	open := everybody()
	open.Closed = false
	s := behind(guard.Config{Access: open}, 1)
	for path, want := range map[string]int{
		"/jobs": 200, "/nothing": 200, "/docs": 200, "/debugger": 200, "/healthz": 200,
		"/debug": 401, "/debug/": 401, "/debug/pprof/heap": 401, "/%64ebug/workers": 401, "//debug/workers": 200,
		"/metrics": 401, "/metrics/x": 401, "/dead-letter": 401, "/dead-letter/retry": 401,
	} {
		require.Equal(t, want, s.from("127.0.0.1", path).Code, path)
		if want == 401 {
			require.Equal(t, 403, s.from("127.0.0.1", path, bearer(readToken)).Code, path)
			require.Equal(t, 200, s.from("127.0.0.1", path, basic("admin", password)).Code, path)
		}
	}
}

func TestListsOfScopesKeepWhatTheyAllowed(t *testing.T) {
	for list, want := range map[string]string{
		"submit":                   "submit payloads",
		"read":                     "read payloads",
		"operate":                  "observe operate payloads",
		"submit read operate":      "submit read observe operate payloads",
		"observe":                  "observe",
		"read observe":             "read observe",
		"observe operate":          "observe operate",
		"observe payloads":         "observe payloads",
		"observe operate payloads": "observe operate payloads",
		"operate payloads":         "observe operate payloads",
	} {
		var listed []guard.Scope
		for _, scope := range strings.Fields(list) {
			listed = append(listed, guard.Scope(scope))
		}
		g := guard.New(guard.Config{Log: slog.New(slog.DiscardHandler), Access: &guard.Access{Tokens: []guard.Token{
			{Name: "a", Digest: guard.DigestOf("a"), Scopes: listed},
		}}})
		var may []string
		r := httptest.NewRequest(http.MethodGet, "/jobs", nil)
		r.Header.Set("Authorization", "Bearer a")
		g.Admit(nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for _, scope := range guard.Scopes() {
				err := g.Permit(r.Context(), scope)
				if err == nil {
					may = append(may, string(scope))
					continue
				}
				require.ErrorIs(t, err, guard.ErrForbidden)
				require.ErrorContains(t, err, string(scope))
			}
			require.Equal(t, slices.Contains(may, "payloads"), guard.SeesPayloads(r.Context()), list)
		})).ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, strings.Join(may, " "), list)
	}
}

func TestOperatorsPathsAreForActingOnlyWithOperate(t *testing.T) {
	access := everybody()
	access.Tokens = append(access.Tokens,
		guard.Token{Name: "observer", Digest: guard.DigestOf("observer"), Scopes: []guard.Scope{guard.Observe}},
		guard.Token{Name: "operator", Digest: guard.DigestOf("operator"), Scopes: []guard.Scope{guard.Observe, guard.Operate}})
	s := behind(guard.Config{Access: access}, 1)
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 200, "POST": 403, "PUT": 403, "PATCH": 403, "DELETE": 403, "X": 403} {
		for token, want := range map[string]int{"observer": want, "operator": 200} {
			r := httptest.NewRequest(method, "/debug/nothing", nil)
			r.RemoteAddr = "192.0.2.1:4711"
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			require.Equal(t, want, w.Code, "%s by %s", method, token)
		}
	}
}

func TestAnOpenGuardIsOpenOnlyToThisMachine(t *testing.T) {
	open := everybody()
	open.Closed = false
	s := behind(guard.Config{Access: open}, 1)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "x.localhost:80": 200, "127.9.9.9": 200, "[::1]:80": 200, "::1": 200,
		"rebound.example": 401, "rebound.example:80": 401, "localhost.example": 401, "10.0.0.1": 401, "": 401,
	} {
		r := httptest.NewRequest(http.MethodGet, "/jobs", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:4711", host
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, host)
	}
	require.Equal(t, 401, s.from("192.0.2.1", "/jobs").Code)
}

func TestGuessingEndsInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := behind(guard.Config{Access: everybody(), Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, 1)
		for i := range 30 {
			require.Equal(t, 401, s.from("192.0.2.1", "/jobs", bearer(fmt.Sprint(wrongToken, i))).Code)
		}
		for _, headers := range [][]string{{bearer(wrongToken)}, {bearer(readToken)}, {basic("admin", password)}} {
			answer := s.from("192.0.2.1", "/jobs", headers...)
			require.Equal(t, 429, answer.Code, "right or wrong, nothing can be told")
			require.NotEmpty(t, answer.Header().Get("Retry-After"))
		}
		require.Equal(t, 401, s.from("192.0.2.1", "/jobs").Code, "without credentials nothing is guessed")
		require.Equal(t, 200, s.from("192.0.2.2", "/jobs", bearer(readToken)).Code, "another client is not blocked")
		time.Sleep(2 * time.Minute)
		require.Equal(t, 200, s.from("192.0.2.1", "/jobs", bearer(readToken)).Code)
	})
}

func TestWrongCredentialsAreLoggedSparinglyAndWithoutThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := behind(guard.Config{Access: everybody()}, 1)
		for i := range 200 {
			answer := s.from(fmt.Sprintf("192.0.2.%d", i), "/jobs", basic("canary-user", wrongToken))
			require.NotContains(t, answer.Body.String(), "canary")
			answer = s.from(fmt.Sprintf("192.0.2.%d", i), "/jobs", bearer(wrongToken))
			require.NotContains(t, answer.Body.String(), "canary")
		}
		require.Equal(t, 1, strings.Count(s.log.String(), "\n"))
		time.Sleep(time.Second)
		s.from("192.0.2.200", "/jobs", bearer(wrongToken))
		require.Equal(t, 2, strings.Count(s.log.String(), "\n"))
		require.Contains(t, s.log.String(), `"level":"WARN","msg":"wrong credentials","client":"192.0.2.200","blocked":false,"not_logged":399`)
		require.NotContains(t, s.log.String(), "canary")
	})
}

func TestTenantIsThatOfTheToken(t *testing.T) {
	s := behind(guard.Config{Access: everybody()}, 1)
	require.Equal(t, "acme", s.from("192.0.2.1", "/jobs", bearer(acmeToken)).Body.String())
	require.Empty(t, s.from("192.0.2.1", "/jobs", bearer(readToken)).Body.String())
	require.Empty(t, s.from("192.0.2.1", "/jobs", basic("admin", password)).Body.String())
}

func TestNilGuardIsOpen(t *testing.T) {
	var g *guard.Guard
	require.True(t, g.Take(t.Context(), guard.Jobs, 1<<30).Allowed)
	require.NoError(t, g.Permit(t.Context(), guard.Operate))
	require.False(t, g.Needs(guard.Operate))
	passed := false
	handler := g.Client(g.Admit(nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true })))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/debug/x", nil))
	require.True(t, passed)
}
