package ui

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// window is a time that the overview looks back.
type window struct {
	Minutes int
	Label   string
	Current bool
}

// usualMinutes is the window that pages show unless another is chosen.
const usualMinutes = 15

// windows are those to choose from. The first is the default.
func windows(minutes int) []window {
	all := []window{{Minutes: usualMinutes, Label: "15 min"}, {Minutes: 60, Label: "1 h"}, {Minutes: 1440, Label: "24 h"}}
	at := max(0, slices.IndexFunc(all, func(w window) bool { return w.Minutes == minutes }))
	all[at].Current = true
	return all
}

// overview is the first page.
type overview struct {
	Windows  []window
	Metrics  *v1.Metrics
	Problems []trouble
	Tiles    []tile
	// Series is what happened in the window, Recent the same together, and Charts show it; nil
	// while it is being counted, as Metrics is.
	Series *v1.Series
	Recent *v1.Recent
	Charts []chart
	// Empty is set if there has never been a job.
	Empty bool
	// Address is that of this server, for the command that submits a first job.
	Address     string
	At, Failing time.Time
}

// tile is the number of jobs in a state, with a link to them.
type tile struct {
	Label, Class, Path string
	Jobs               int64
}

func (s *site) overview(r chi.Router) {
	r.Get("/", s.serve(showOverview))
}

func showOverview(v *visit) (answer, error) {
	if guard.Tenant(v.context()) != "" {
		return back{To: Root + "/jobs"}, nil // Everybody lands here after a login, and tenants see no overview.
	}
	asked, _ := strconv.Atoi(v.query("minutes"))
	shown := overview{Windows: windows(asked)}
	chosen := shown.Windows[slices.IndexFunc(shown.Windows, func(w window) bool { return w.Current })]
	var (
		metrics snapshot.Figures[*v1.Metrics]
		series  snapshot.Figures[*v1.Series]
		workers snapshot.Figures[*v1.WorkerList]
		plugins snapshot.Figures[*v1.PluginList]
	)
	err := atOnce(
		func() (err error) { metrics, err = v.metrics(); return err },
		func() (err error) { series, err = v.series(seriesWindows[chosen.Minutes], ""); return err },
		func() (err error) {
			workers, err = shared[v1.WorkerList](v, client.Path("debug", "workers"), nil)
			return err
		},
		func() (err error) {
			plugins, err = shared[v1.PluginList](v, client.Path("debug", "plugins"), nil)
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, metrics)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, series)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, workers)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, plugins)
	shown.Metrics = metrics.Value
	if !metrics.Pending() {
		shown.Problems = troubles(metrics.Value, workers.Value.Workers, plugins.Value.Plugins)
		shown.Tiles = tilesOf(metrics.Value)
		shown.Empty = !slices.ContainsFunc(shown.Tiles, func(t tile) bool { return t.Jobs > 0 })
	}
	if shown.Series = series.Value; !series.Pending() {
		shown.Recent, shown.Charts = recentOf(series.Value), charts(series.Value)
	}
	shown.Address = v.address()
	var shows any
	if shown.Failing.IsZero() { // Otherwise, the page says for how long.
		shows = [...]any{metrics, series, workers, plugins, isOld(shown.At, v.Now())}
	}
	return view{
		Template: "overview", Title: "Overview", Data: shown, Shows: shows, Styles: []string{"uplot.css"}, Scripts: []string{"uplot.js", "charts.js"},
	}, nil
}

// recentOf is what happened in the whole window.
func recentOf(series *v1.Series) *v1.Recent {
	recent := &v1.Recent{}
	for _, slot := range series.Slots {
		recent.Submitted += slot.Submitted
		recent.Succeeded += slot.Succeeded
		recent.Dead += slot.Dead
		recent.Canceled += slot.Canceled
		recent.FailedAttempts += slot.Retried + slot.Dead // Every dead job has an attempt that failed.
		recent.Requeued += slot.Requeued
	}
	return recent
}

func tilesOf(metrics *v1.Metrics) []tile {
	var scheduled, held int64
	for _, queue := range metrics.Queues {
		scheduled += queue.Scheduled
		held += queue.Held
	}
	jobs := func(state job.State) int64 { return metrics.StatusCounts[state] }
	// The queues know the difference, and the counts are of another moment.
	return []tile{
		{"Queued", "queued", "/ui/jobs?state=queued", jobs(job.Queued)},
		{"Scheduled", "created", "/ui/jobs?state=scheduled", scheduled},
		{"Held", "held", "/ui/jobs?state=held", held},
		{"Retrying", "retry", "/ui/jobs?state=retrying", jobs(job.Retry)},
		{"Running", "running", "/ui/jobs?state=running", jobs(job.Running)},
		{"Succeeded", "succeeded", "/ui/jobs?state=succeeded", jobs(job.Succeeded)},
		{"Dead", "dead", "/ui/dead-letters", jobs(job.Dead)},
		{"Canceled", "canceled", "/ui/jobs?state=canceled", jobs(job.Canceled)},
	}
}

// address is the URL of this server, as the browser has it.
func (v *visit) address() string {
	scheme := "http://"
	if v.request.TLS != nil {
		scheme = "https://"
	}
	return scheme + v.request.Host
}
