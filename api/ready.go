package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// readyWithin is how long the database may take to answer a readiness probe.
const readyWithin = time.Second

// readiness answers probes that ask whether the process can do what its roles are for.
// Everybody can read the answer: it has no names and no addresses.
type readiness struct {
	jobs    Jobs
	plugins Plugins // nil for none
	roles   job.Roles
	log     *slog.Logger
}

// ready is the answer of a process that is.
type ready struct {
	Status string    `json:"status"`
	Roles  job.Roles `json:"roles,omitempty"`
	Needs  []need    `json:"needs"`
}

// need is what a role cannot do without.
type need struct {
	Need string `json:"need"`
	Met  bool   `json:"met"`
	// Detail says how far it is met, and reason why the process is not ready without it.
	Detail string `json:"detail,omitempty"`
	reason string
	// optional says that the process is ready even if it is not met.
	optional bool
}

func (p *readiness) answer(w http.ResponseWriter, r *http.Request) {
	needs := p.needs(r.Context())
	for _, n := range needs {
		if !n.Met && !n.optional {
			write(w, v1.Unavailable(n.reason))
			return
		}
	}
	w.Header().Set("Content-Type", mediaJSON)
	_ = json.NewEncoder(w).Encode(ready{Status: "ok", Roles: p.roles, Needs: needs})
}

// needs are those of all roles. Each role needs the database, and a worker its plugins too. A
// process that also serves the API is ready without them: clients can submit jobs.
func (p *readiness) needs(ctx context.Context) []need {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	database := need{Need: "database", Met: true, reason: "the database does not answer"}
	if err := p.jobs.Ping(ctx); err != nil {
		p.log.WarnContext(ctx, "not ready", "error", err)
		database.Met = false
	}
	if !p.roles.Has(job.RoleWorker) {
		return []need{database}
	}
	return []need{database, p.pluginsUp()}
}

// pluginsUp does not count plugins that an operator has disabled.
func (p *readiness) pluginsUp() need {
	up, of := 0, 0
	if p.plugins != nil {
		for _, plugin := range p.plugins.Status() {
			if plugin.State != job.PluginDisabled {
				of++
			}
			if plugin.State == job.PluginUp {
				up++
			}
		}
	}
	detail := fmt.Sprintf("%d of %d up", up, of)
	return need{Need: "plugins", Met: up == of, Detail: detail, reason: "the worker waits for its plugins: " + detail, optional: p.roles.Has(job.RoleAPI)}
}

// notHere answers requests that a process without the role api gets.
func notHere(roles job.Roles) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		write(w, v1.NewProblem(http.StatusNotFound, fmt.Sprintf(
			"this process does not serve the API (its roles: %s); ask one that has the role api", roles)))
	}
}
