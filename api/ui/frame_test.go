package ui_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func closed() *guard.Guard {
	return guard.New(guard.Config{Access: &guard.Access{
		User: "admin", Password: guard.DigestOf("secret"), Closed: true,
		Tokens: []guard.Token{
			{Name: "eyes", Digest: guard.DigestOf("eyes"), Scopes: []guard.Scope{guard.Observe}},
			{Name: "client", Digest: guard.DigestOf("client"), Scopes: []guard.Scope{guard.Read}},
			{Name: "acme", Digest: guard.DigestOf("acme"), Scopes: guard.Scopes(), Tenant: "acme"},
		},
	}})
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	p := newPages(healthy())
	for _, path := range []string{
		"/ui", "/ui/", "/ui/settings", "/ui/health", "/ui/nothing", "/ui/assets/nothing.js", "/ui/assets/../x", "/ui/settings?x=%zz",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			w := p.do(httptest.NewRequest(method, path, nil))
			require.Equal(t, policy, w.Header().Get("Content-Security-Policy"), "%s %s", method, path)
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
			require.Equal(t, "same-origin", w.Header().Get("Referrer-Policy"))
			require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Len(t, w.Header().Values("Content-Security-Policy"), 1)
		}
	}
}

func TestARefusalIsAPage(t *testing.T) {
	p := newPagesFor(closed(), healthy())
	w := p.get("/ui/")
	require.Equal(t, 401, w.Code)
	require.NotEmpty(t, w.Header().Values("Www-Authenticate"))
	require.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
	requireGolden(t, "refused-401", w)

	w = p.get("/ui/health", "Authorization: Bearer client")
	require.Equal(t, 403, w.Code)
	requireGolden(t, "refused-403", w)

	w = p.get("/ui/nothing", "Authorization: Bearer eyes")
	require.Equal(t, 404, w.Code)
	requireGolden(t, "refused-404", w)

	down := newPages(map[string]any{"GET /metrics": v1.Unavailable("the database is not available; try again")})
	w = down.get("/ui/")
	require.Equal(t, 503, w.Code)
	requireGolden(t, "refused-503", w)
}

func TestAWrongAddressSaysWhatIsRight(t *testing.T) {
	wrong := v1.Invalid(v1.Mistake{Location: "path.id", Message: "not a UUID of the form xxxxxxxx"})
	w := newPages(map[string]any{"GET /workflows/nonsense": wrong}).get("/ui/workflows/nonsense")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "<h1>Wrong address</h1>")
	require.Contains(t, w.Body.String(), "<code>path.id</code> not a UUID of the form xxxxxxxx")
	require.NotContains(t, w.Body.String(), "Unprocessable")

	w = newPages(nil).post(workflowURL+"/act", "act", "nonsense")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "<h1>Not accepted</h1>")
	require.Contains(t, w.Body.String(), "There is no such act.")
}

func TestOnlyAnswersOfTheUIAreFramed(t *testing.T) {
	api := ui.Frame(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", v1.ProblemMedia)
		w.WriteHeader(404)
		_, _ = w.Write([]byte("{}"))
	}))
	for _, path := range []string{"/jobs", "/uid", "/debug/ui/"} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		require.Empty(t, w.Header().Get("Content-Security-Policy"), path)
		require.Equal(t, "{}", w.Body.String(), path)
	}
}

func TestWhatMayNotBeSeenIsDisabledWithTheReason(t *testing.T) {
	p := newPagesFor(closed(), healthy())
	client := p.get("/ui/settings", "Authorization: Bearer client").Body.String()
	require.Contains(t, client, `<span class="off" title="Needs the scope observe, which you do not have.">Overview`)
	require.Contains(t, client, `<a href="/ui/settings" aria-current="page"`)
	bound := p.get("/ui/settings", "Authorization: Bearer acme").Body.String()
	require.Contains(t, bound, `title="Concerns all tenants. You see acme only.">Overview`)
	require.Contains(t, bound, `<a class="brand" href="/ui/jobs">`)
	all := p.get("/ui/settings", "Authorization: Basic YWRtaW46c2VjcmV0").Body.String()
	require.NotContains(t, all, `class="off"`)
}

func TestCallersOfOneTenantLandWhereTheySeeSomething(t *testing.T) {
	answers := healthy()
	answers["GET /debug/workers"] = v1.NewProblem(http.StatusForbidden, "it concerns all tenants")
	p := newPagesFor(closed(), answers)
	w := p.get("/ui/", "Authorization: Bearer acme")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/ui/jobs", w.Header().Get("Location"))
	w = p.get("/ui/workers", "Authorization: Bearer acme")
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), `<a href="/ui/jobs">Jobs</a></p>`, "the way out is a page that they see")
}

func TestTheTimeForAPageBeginsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrived, until := time.Now(), time.Time{}
		site := ui.New(ui.Config{API: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { until, _ = r.Context().Deadline() })})
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second) // As when the database does not say who it is.
			site.ServeHTTP(w, r)
		})
		ui.Frame(slow).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/ui/operations", nil))
		require.Equal(t, 2500*time.Millisecond, until.Sub(arrived))
	})
}
