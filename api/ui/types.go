package ui

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func (s *site) types(r chi.Router) {
	r.Get("/types", s.serve(showTypes))
	r.Get("/types/{type}", s.serve(showType))
	r.Post("/types/{type}/pause", s.serve(pauseType))
	r.Post("/types/{type}/resume", s.serve(resumeType))
	r.Post("/types/{type}/limit", s.serve(limitType))
	r.Post("/types/{type}/limit/remove", s.serve(unlimitType))
	r.Get("/types/{type}/new", s.serve(showNewJob))
	r.Post("/types/{type}/new", s.serve(submitNewJob))
}

// types is the list of job types.
type types struct {
	Types []typeRow
	// Pending is set while their jobs are counted for the first time.
	Pending     bool
	At, Failing time.Time
}

// typeRow is a job type with its figures.
type typeRow struct {
	v1.Queue
	// Mean is how long a successful attempt takes, in seconds; 0 if none has succeeded.
	Mean float64
	// Lately is what happened in the last hour; without runs if none have ended.
	Lately v1.SeriesType
	// Declared is what its handler says; nil if none has ever declared it, or the caller may not
	// see that.
	Declared *v1.JobType
}

func showTypes(v *visit) (answer, error) {
	shown := types{}
	var (
		metrics  snapshot.Figures[*v1.Metrics]
		series   snapshot.Figures[*v1.Series]
		declared snapshot.Figures[*v1.JobTypeList]
	)
	err := atOnce(
		func() (err error) { metrics, err = v.metrics(); return err },
		func() (err error) { series, err = v.series(v1.Hour, ""); return err },
		func() (err error) {
			if v.denied(guard.Read) == "" {
				declared, err = shared[v1.JobTypeList](v, "/job-types", nil)
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, metrics)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, series)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, declared)
	if shown.Pending = metrics.Pending(); !shown.Pending {
		shown.Types = typeRows(metrics.Value, declared.Value)
	}
	if !series.Pending() {
		for i, row := range shown.Types {
			shown.Types[i].Lately = seriesOfType(series.Value, row.JobType)
		}
	}
	return view{Template: "types", Title: "Job types", Data: shown}, nil
}

// typeRows has every type that has jobs or that a handler has declared, by name.
// No list is declared if the caller may not see it.
func typeRows(metrics *v1.Metrics, declared *v1.JobTypeList) []typeRow {
	rows := map[string]typeRow{}
	for _, queue := range metrics.Queues {
		rows[queue.JobType] = typeRow{Queue: queue}
	}
	if declared != nil {
		for i, one := range declared.JobTypes {
			row := rows[one.JobType]
			row.JobType, row.Declared = one.JobType, &declared.JobTypes[i]
			rows[one.JobType] = row
		}
	}
	sorted := make([]typeRow, 0, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		row := rows[name]
		row.Mean = metrics.AvgDurationSecondsByJobType[name]
		sorted = append(sorted, row)
	}
	return sorted
}

// Spark is a small picture of the attempts that have ended in the last hour.
func (r typeRow) Spark() template.HTML { return spark(r.Lately) }

// Jobs is the list of the jobs of the type in a state.
func (r typeRow) Jobs(state string) string {
	return Root + "/jobs?" + url.Values{"jobType": {r.JobType}, "state": {state}}.Encode()
}

// Path is the page of the type, or one below it.
func (r typeRow) Path(below ...string) string { return typePath(r.JobType, below...) }

func typePath(name string, below ...string) string {
	return Root + client.Path(append([]string{"types", name}, below...)...)
}
