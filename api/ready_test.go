package api_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAProcessIsReadyWhenItHasWhatItsRolesNeed(t *testing.T) {
	up, down, disabled := v1.Plugin{State: job.PluginUp}, v1.Plugin{State: job.PluginBroken}, v1.Plugin{State: job.PluginDisabled}
	const database = `{"need":"database","met":true}`
	for _, c := range []struct {
		name   string
		roles  job.Roles
		has    []v1.Plugin
		status int
		answer string
	}{
		{"an API", job.Roles{job.RoleAPI}, nil, 200, `{"status":"ok","roles":["api"],"needs":[` + database + `]}`},
		{"maintenance", job.Roles{job.RoleMaintenance}, nil, 200, `{"status":"ok","roles":["maintenance"],"needs":[` + database + `]}`},
		{
			"a worker whose plugins are up",
			job.Roles{job.RoleWorker},
			[]v1.Plugin{up, up, disabled},
			200, `{"status":"ok","roles":["worker"],"needs":[` + database + `,{"need":"plugins","met":true,"detail":"2 of 2 up"}]}`,
		},
		{
			"a worker with a plugin that is down",
			job.Roles{job.RoleWorker, job.RoleMaintenance},
			[]v1.Plugin{up, down, disabled},
			503, `{"title":"Service Unavailable","status":503,"detail":"the worker waits for its plugins: 1 of 2 up"}`,
		},
		{
			"an API with a plugin that is down", job.AllRoles(),
			[]v1.Plugin{down},
			200, `{"status":"ok","roles":["api","worker","maintenance"],"needs":[` + database + `,{"need":"plugins","met":false,"detail":"0 of 1 up"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := send(api.New(api.Config{
				Jobs: newLedger(), Plugins: &plugins{status: c.has}, Roles: c.roles, Log: slog.New(slog.DiscardHandler),
			}), "GET", "/readyz", "")
			require.Equal(t, c.status, answer.Code)
			require.JSONEq(t, c.answer, answer.Body.String())
		})
	}
}

func TestAProcessWithoutTheAPIServesProbesAndMetrics(t *testing.T) {
	l := newLedger()
	h := api.NewProbes(api.Config{
		Jobs: l, Operations: l, Roles: job.Roles{job.RoleWorker, job.RoleMaintenance}, Log: slog.New(slog.DiscardHandler),
		Prometheus: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }),
	})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		require.Equal(t, 200, send(h, "GET", path, "", "Accept: text/plain").Code, path)
	}
	for _, path := range []string{"/jobs", "/debug/workers", "/ui", "/docs", "/openapi.json"} {
		answer := send(h, "GET", path, "")
		require.Equal(t, 404, answer.Code, path)
		require.Contains(t, answer.Body.String(), "this process does not serve the API (its roles: worker,maintenance); ask one that has the role api", path)
	}
}
