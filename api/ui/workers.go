package ui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (s *site) workers(r chi.Router) {
	r.Get("/workers", s.serve(showWorkers))
	r.Get("/workers/{worker}", s.serve(showWorker))
	r.Post("/workers/{worker}/drain", s.serve(drainWorker))
	r.Post("/workers/{worker}/resume", s.serve(resumeWorker))
}

// workers is the list of workers.
type workers struct {
	Workers     []workerRow
	At, Failing time.Time
}

// workerRow is a worker with what it says about its plugins.
type workerRow struct {
	v1.Worker
	Plugins []workerPlugin
	// Ended is how many jobs it has ended.
	Ended int64
	// Since is how long it has run, or ran.
	Since time.Duration
}

// workerPlugin is a plugin as a worker has described it.
type workerPlugin struct {
	Name, Version string
	JobTypes      []string
}

func rowOfWorker(w v1.Worker, now time.Time) workerRow {
	row := workerRow{Worker: w}
	_ = json.Unmarshal(w.Plugins, &row.Plugins) // A worker of another version may say something else.
	for state, jobs := range w.Jobs {
		if state.Final() {
			row.Ended += jobs
		}
	}
	end := now
	if w.StoppedAt != nil {
		end = *w.StoppedAt
	}
	row.Since = end.Sub(w.StartedAt).Truncate(time.Second)
	return row
}

// Running is how many jobs it runs.
func (w workerRow) Running() int64 { return w.Jobs[job.Running] }

// Path is the page of the worker, or one below it.
func (w workerRow) Path(below ...string) string {
	return Root + client.Path(append([]string{"workers", w.WorkerID}, below...)...)
}

// RoleNames are its roles, for people.
func (w workerRow) RoleNames() string { return strings.Join(w.Roles.Names(), ", ") }

// Works reports whether it takes jobs.
func (w workerRow) Works() bool { return w.Condition == job.WorkerAlive && w.Roles.Has(job.RoleWorker) }

// Rests reports whether it was asked to take no more jobs.
func (w workerRow) Rests() bool {
	return w.Condition == job.WorkerDraining || w.Condition == job.WorkerDrained
}

// Versions are the plugins with their versions.
func (w workerRow) Versions() string {
	var all []string
	for _, plugin := range w.Plugins {
		all = append(all, strings.TrimSpace(plugin.Name+" "+plugin.Version))
	}
	return strings.Join(all, ", ")
}

func showWorkers(v *visit) (answer, error) {
	found, err := shared[v1.WorkerList](v, client.Path("debug", "workers"), nil)
	if err != nil {
		return nil, err
	}
	shown := workers{}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, found)
	for _, w := range found.Value.Workers {
		shown.Workers = append(shown.Workers, rowOfWorker(w, v.now))
	}
	return view{Template: "workers", Title: "Workers", Data: shown}, nil
}

// workerPage is one worker with the jobs that it runs.
type workerPage struct {
	workerRow
	Jobs []v1.FoundJob
	// More says that it runs more jobs.
	More bool
}

func showWorker(v *visit) (answer, error) {
	id := v.param("worker")
	found, err := shared[v1.WorkerList](v, client.Path("debug", "workers"), nil)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(found.Value.Workers, func(w v1.Worker) bool { return w.WorkerID == id })
	if at < 0 {
		return nil, v1.NewProblem(http.StatusNotFound, "no worker of this id has given a sign of life within a day")
	}
	var running v1.FoundJobs
	if err := v.get(client.Path("debug", "jobs"), url.Values{"worker": {id}, "state": {"running"}, "limit": {"100"}}, &running); err != nil {
		return nil, err
	}
	shown := workerPage{workerRow: rowOfWorker(found.Value.Workers[at], v.now), Jobs: running.Jobs, More: running.NextCursor != ""}
	return view{Template: "worker", Title: "Worker " + id, Data: shown}, nil
}

func drainWorker(v *visit) (answer, error) {
	w := workerRow{Worker: v1.Worker{WorkerID: v.param("worker")}}
	if err := v.send(http.MethodPost, client.Path("debug", "workers", w.WorkerID, "drain"), nil, nil); err != nil {
		return nil, err
	}
	return back{To: v.returnTo(w.Path()), Notice: "The worker takes no more jobs.", Undo: &undo{To: w.Path("resume")}}, nil
}

func resumeWorker(v *visit) (answer, error) {
	w := workerRow{Worker: v1.Worker{WorkerID: v.param("worker")}}
	if err := v.send(http.MethodPost, client.Path("debug", "workers", w.WorkerID, "resume"), nil, nil); err != nil {
		return nil, err
	}
	return back{To: v.returnTo(w.Path()), Notice: "The worker takes jobs again."}, nil
}
