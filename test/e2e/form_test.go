package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// The other tests do not look at which processes they run.
func TestAnOrchestratorIsTheProcessesThatTheVariableAsksFor(t *testing.T) {
	t.Parallel()
	o := orchestrator(t, pgtest.URL(t), append(plugin(0, "builtin", "handlers"), "worker.id=it")...)
	rigtest.Start(t, o)
	var found v1.WorkerList
	require.NoError(t, o.Call(t.Context(), http.MethodGet, "/debug/workers", nil, http.StatusOK, &found))
	roles, pids := make(map[string]job.Roles), make(map[int]bool)
	for _, w := range found.Workers {
		id, _, _ := strings.Cut(w.WorkerID, "/")
		roles[id] = w.Roles
		pids[w.PID] = true
	}
	want := map[string]job.Roles{"it": job.AllRoles()}
	if apart {
		want = map[string]job.Roles{"it-api": {job.RoleAPI}, "it": {job.RoleWorker}, "it-maintenance": {job.RoleMaintenance}}
	}
	require.Equal(t, want, roles)
	require.Len(t, pids, len(want))
	require.Len(t, o.Servers(), len(want))
	require.Len(t, o.Handlers("handlers"), 1, "one process has the plugin")
	require.NoError(t, o.ShutDown(t.Context()))
	require.False(t, o.Running())
}
