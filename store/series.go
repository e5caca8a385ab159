package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// RecordLatencies adds how long jobs have waited and run, as of so long ago, to their slot.
// It returns how much of the current slot has passed by the clock of the database. After an
// error, it may have added them or not.
func (s *Store) RecordLatencies(ctx context.Context, ago time.Duration, batch []job.TypeLatencies) (time.Duration, error) {
	batch = slices.Clone(batch)
	slices.SortFunc(batch, func(a, b job.TypeLatencies) int { return cmp.Compare(a.Type, b.Type) })
	passed, err := postgres.ChangeOne[float64](ctx, s.db.Worker, "record_latencies", postgres.Interval(ago),
		postgres.Column(batch, func(t job.TypeLatencies) string { return t.Type }),
		postgres.Column(batch, func(t job.TypeLatencies) string { return arrayText(t.Waits) }),
		postgres.Column(batch, func(t job.TypeLatencies) string { return arrayText(t.Runs) }))
	return time.Duration(passed * float64(time.Second)), err
}

// arrayText writes counts as PostgreSQL reads an array. An array of arrays could not have
// members of different lengths.
func arrayText(counts []int64) string {
	return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(counts), " ", ","), "[]") + "}"
}

// Series returns what happened in the window, slot by slot, to the jobs of all types or of
// one. It reads the tallies and counts the open jobs in their lists, all at one moment. If there
// is no such type, and never was, the error is job.ErrNoType.
func (s *Store) Series(ctx context.Context, window v1.SeriesWindow, jobType string) (v1.Series, error) {
	var series v1.Series
	known := true
	step := postgres.Interval(window.Slot())
	err := s.figures(ctx, "series", func(tx pgx.Tx) error {
		type frame struct{ At, Start time.Time }
		of, err := postgres.Rows(ctx, tx, "series_slots", pgx.RowToStructByName[frame], step, window.Slots())
		if err != nil {
			return err
		}
		start := of[0].Start
		events, err := postgres.Rows(ctx, tx, "series_events", pgx.RowToStructByName[v1.SeriesEvents], start, step, jobType)
		if err != nil {
			return err
		}
		latencies, err := postgres.Rows(ctx, tx, "series_latencies", pgx.RowToStructByName[v1.SeriesLatencies], start, step, jobType)
		if err != nil {
			return err
		}
		open, err := postgres.Rows(ctx, tx, "series_open", pgx.RowTo[int64], jobType)
		if err != nil {
			return err
		}
		if jobType != "" && len(events) == 0 && open[0] == 0 {
			found, err := postgres.Rows(ctx, tx, "type_known", pgx.RowTo[bool], jobType)
			if err != nil {
				return err
			}
			known = found[0]
		}
		series = v1.SeriesOf(window, jobType, of[0].At, start, events, latencies, open[0])
		if len(series.JobTypes) == 0 || window == v1.Day { // A day has too many slots to add up for each type.
			return nil
		}
		var types []string
		for _, t := range series.JobTypes {
			types = append(types, t.JobType)
		}
		runs, err := postgres.Rows(ctx, tx, "series_runs", pgx.RowToStructByName[v1.SeriesRuns], start, types)
		series.AddRuns(runs)
		return err
	})
	if err == nil && !known {
		return v1.Series{}, fmt.Errorf("series: %w", job.ErrNoType)
	}
	return series, err
}
