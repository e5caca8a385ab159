package ui

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// diagnoses has the last diagnosis that somebody asked for. All who may see one see the same.
type diagnoses struct {
	mu   sync.Mutex
	last diagnosis
}

// diagnosis is one run of the doctor.
type diagnosis struct {
	// BegunAt is zero if nobody has asked yet.
	BegunAt time.Time
	// EndedAt is zero while it runs.
	EndedAt time.Time
	Found   *v1.Diagnosis
	// Problem is why it failed; empty if it did not.
	Problem string
}

// health is what the page shows.
type health struct {
	diagnosis
	// Replica is nil if there is none.
	Replica *v1.Replica
	// Lag is how old what it shows is, in seconds; empty if it was never seen.
	Lag string
}

// Running reports whether it has not ended.
func (d diagnosis) Running() bool { return !d.BegunAt.IsZero() && d.EndedAt.IsZero() }

func (s *site) health(r chi.Router) {
	r.Get("/health", s.serve(showHealth))
	r.Post("/health", s.serve(diagnose))
}

func showHealth(v *visit) (answer, error) {
	if why := v.deniedAll(guard.Observe); why != "" {
		return nil, v1.NewProblem(http.StatusForbidden, why)
	}
	shown := health{}
	var replica v1.Replica
	if err := v.get(client.Path("debug", "replica"), nil, &replica); err != nil {
		return nil, err
	}
	if replica.Configured {
		shown.Replica = &replica
		if lag := replica.LagSeconds; lag != nil {
			shown.Lag = strconv.FormatFloat(*lag, 'f', 1, 64)
		}
	}
	v.diagnoses.mu.Lock()
	defer v.diagnoses.mu.Unlock()
	shown.diagnosis = v.diagnoses.last
	return view{Template: "health", Title: "Health", Data: shown}, nil
}

// diagnose begins a diagnosis, unless one runs. It may take minutes, so nobody waits for it.
func diagnose(v *visit) (answer, error) {
	if why := v.deniedAll(guard.Observe); why != "" {
		return nil, v1.NewProblem(http.StatusForbidden, why)
	}
	d := v.diagnoses
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.last.Running() {
		d.last = diagnosis{BegunAt: v.Now()}
		go d.run(context.WithoutCancel(v.context()), v.site)
	}
	return back{To: Root + "/health"}, nil
}

func (d *diagnoses) run(ctx context.Context, s *site) {
	var found v1.Diagnosis
	err := func() (err error) {
		defer func() {
			if recover() != nil {
				err = errors.New("internal error")
			}
		}()
		return s.api.Get(ctx, client.Path("debug", "doctor"), nil, &found)
	}()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.EndedAt = s.Now()
	if err == nil {
		d.last.Found = &found
		return
	}
	d.last.Problem = "Internal error."
	if problem := client.ProblemOf(err); problem != nil {
		d.last.Problem = sentence(problem.Detail)
	}
	s.Log.WarnContext(ctx, "diagnosis failed", "error", err)
}
