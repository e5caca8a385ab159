package ui_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheDoctorLooksOnlyWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := make(chan struct{})
		answers := healthy()
		answers["GET /debug/doctor"] = func(*http.Request) any {
			<-looked
			return v1.Diagnosis{Severity: job.Problem, Checks: []v1.Check{
				{Name: "leases", Severity: job.Fine, Summary: "Every lease has a live owner."},
				{Name: "ledger", Severity: job.Problem, Summary: "<img onerror=x>", Details: []string{"job 1"}, Remedy: "Restore a backup."},
			}}
		}
		p := newPages(answers)
		requireGolden(t, "health", p.get("/ui/health"))
		require.Zero(t, p.api.calls["GET /debug/doctor"])

		for range 3 {
			w := p.post("/ui/health")
			require.Equal(t, 303, w.Code)
			require.Equal(t, "/ui/health", w.Header().Get("Location"))
		}
		synctest.Wait()
		requireGolden(t, "health-running", p.get("/ui/health"))
		close(looked)
		synctest.Wait()
		require.Equal(t, 1, p.api.calls["GET /debug/doctor"], "once for all who ask meanwhile")
		w := p.get("/ui/health")
		requireGolden(t, "health-found", w)
		require.NotContains(t, w.Body.String(), "<img")
	})
}

func TestTheHealthPageSaysHowTheReplicaIsUsed(t *testing.T) {
	answers := healthy()
	answers["GET /debug/replica"] = v1.Replica{Configured: true, Used: true, LagSeconds: new(0.72), MaxLagSeconds: 10}
	require.Contains(t, newPages(answers).get("/ui/health").Body.String(), "come from the replica of the database, which is at most 0.7 s behind")
	answers["GET /debug/replica"] = v1.Replica{Configured: true, Reason: "the replica is <behind>", LagSeconds: new(42.0), MaxLagSeconds: 10}
	page := newPages(answers).get("/ui/health").Body.String()
	require.Contains(t, page, "come from the primary, not from the replica: the replica is &lt;behind&gt;. It was last seen 42.0 s behind")
	answers["GET /debug/replica"] = v1.Replica{Configured: true, Reason: "it does not answer"}
	require.NotContains(t, newPages(answers).get("/ui/health").Body.String(), "last seen")
}

// A replica may not have yet what the act has changed.
func TestThePageAfterAnActIsFresh(t *testing.T) {
	answers, asked := healthy(), ""
	answers["GET /debug/replica"] = func(r *http.Request) any { asked = r.Header.Get("Cache-Control"); return v1.Replica{} }
	p := newPages(answers)
	p.get("/ui/health")
	require.Empty(t, asked)
	p.get("/ui/health", "Cookie: hf_notice=e30")
	require.Equal(t, "no-cache", asked)
}

func TestADiagnosisThatFailsSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := healthy()
		answers["GET /debug/doctor"] = v1.Unavailable("another diagnosis is in progress")
		p := newPages(answers)
		p.post("/ui/health")
		synctest.Wait()
		require.Contains(t, p.get("/ui/health").Body.String(), "Another diagnosis is in progress.")
	})
}

func TestOnlyCallersWhoSeeAllTenantsSeeADiagnosis(t *testing.T) {
	p := newPagesFor(closed(), healthy())
	for _, token := range []string{"client", "acme"} {
		require.Equal(t, 403, p.get("/ui/health", "Authorization: Bearer "+token).Code, token)
		r, _ := http.NewRequest(http.MethodPost, "/ui/health", nil)
		require.Equal(t, 403, p.do(r, "Authorization: Bearer "+token).Code, token)
	}
	require.Zero(t, p.api.calls["GET /debug/doctor"])
}
