package rig

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Apart returns an orchestrator of three processes on one database, which is not started yet: one
// for each role, as an operator would run them. They run in the same directory, with the
// same settings, but plugins are only the worker's, and each has an address of its own. Of a
// setting worker.id=ID, the worker makes ID, and the others ID-api and ID-maintenance.
func Apart(ctx context.Context, binary, dir string, log func(job.Role) io.Writer, settings ...string) (*Orchestrator, error) {
	var servers []*server
	for _, role := range job.AllRoles() { // the first is the API
		servers = append(servers, &server{
			name: "the process with the role " + string(role), binary: binary, dir: dir, log: log(role),
			settings: settingsOf(role, settings), besides: role != job.RoleAPI,
		})
	}
	return newOrchestrator(ctx, servers)
}

func settingsOf(role job.Role, settings []string) []string {
	id := string(role)
	for _, setting := range settings {
		if given, ok := strings.CutPrefix(setting, "worker.id="); ok && role == job.RoleWorker {
			id = given
		} else if ok {
			id = given + "-" + string(role)
		}
	}
	own := slices.DeleteFunc(slices.Clone(settings), func(setting string) bool {
		return role != job.RoleWorker && strings.HasPrefix(setting, "plugins.")
	})
	return append(own, "roles="+string(role), "worker.id="+id)
}
