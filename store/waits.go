package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// placeRow is a job.Place with what cannot be scanned into it.
type placeRow struct {
	job.Place
	DueAt *time.Time
}

// waits returns what a job waits for: nothing if it does not wait.
func waits(ctx context.Context, tx pgx.Tx, id job.ID) ([]job.Wait, error) {
	found, err := postgres.Rows(ctx, tx, "waits", pgx.RowToStructByNameLax[placeRow], postgres.UUID(id), job.MaxAhead)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	place := found[0].Place
	if due := found[0].DueAt; due != nil {
		place.RunAt = *due
	}
	if place.State == job.Created && place.RunAt.IsZero() {
		if err := readWorkflow(ctx, tx, id, &place); err != nil {
			return nil, err
		}
	}
	if place.State == job.Queued {
		if err := readRules(ctx, tx, &place); err != nil {
			return nil, err
		}
	}
	return place.Waits(), nil
}

// readRules adds to the place what its lane's gate allows, and the pauses.
func readRules(ctx context.Context, tx pgx.Tx, place *job.Place) error {
	type pauseRow struct {
		job.Pause
		Until *time.Time
	}
	paused, err := postgres.Rows(ctx, tx, "waits_pauses", pgx.RowToStructByNameLax[pauseRow], place.Type, place.Plugin, place.Tenant)
	if err != nil {
		return err
	}
	var pauses []job.Pause
	for _, row := range paused {
		if row.Until != nil {
			row.Pause.Until = *row.Until
		}
		pauses = append(pauses, row.Pause)
	}
	var limits []job.Limit
	if gate := place.Lane.Counted(); gate != "" {
		limit, err := readGate(ctx, tx, gate, place)
		if err != nil {
			return err
		}
		limits = append(limits, limit)
	}
	place.Rules = job.NewRules(limits, pauses)
	return nil
}

// readGate adds to the place what is used of the gate, and returns the gate's limit.
func readGate(ctx context.Context, tx pgx.Tx, gate job.Gate, place *job.Place) (job.Limit, error) {
	type gateRow struct {
		Used, Starting int
		Tokens         *float64
		TokensAt       *time.Time
		Concurrency    *int
		Rate, Burst    *int
		Period         *time.Duration
	}
	scope, name := gate.LimitOf()
	found, err := postgres.Rows(ctx, tx, "waits_gate", pgx.RowToStructByName[gateRow], string(gate), string(scope), name, job.MaxAhead)
	if err != nil {
		return job.Limit{}, err
	}
	row := found[0]
	place.Used, place.Starting, place.Tokens = row.Used, row.Starting, row.Tokens
	if row.TokensAt != nil {
		place.TokensAt = *row.TokensAt
	}
	limit := job.Limit{Scope: scope, Name: name, Concurrency: row.Concurrency}
	if row.Rate != nil {
		limit.Rate = &job.Rate{Count: *row.Rate, Period: *row.Period, Burst: 1}
		if row.Burst != nil {
			limit.Rate.Burst = *row.Burst
		}
	}
	return limit, nil
}
