package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// maxEventText bounds the texts of an event, in bytes.
const maxEventText = 4000

// RecordPluginEvents writes events of a worker's plugins. One whose id is there already is
// left out, so that a write whose answer was lost can be repeated.
func (s *Store) RecordPluginEvents(ctx context.Context, worker job.Worker, events []job.PluginEvent) error {
	now := time.Now()
	text := func(of func(job.PluginEvent) string) pgtype.ArrayGetter {
		return postgres.Column(events, func(e job.PluginEvent) string { return job.CleanText(of(e), maxEventText) })
	}
	return s.db.Worker.Do(ctx, "record_plugin_events", worker.ID, worker.Host,
		postgres.Column(events, func(e job.PluginEvent) pgtype.UUID { return postgres.UUID(e.ID) }),
		postgres.Column(events, func(e job.PluginEvent) pgtype.Interval { return postgres.Interval(max(now.Sub(e.At), 0)) }),
		text(func(e job.PluginEvent) string { return e.Plugin }),
		text(func(e job.PluginEvent) string { return string(e.Event) }),
		text(func(e job.PluginEvent) string { return e.Version }),
		text(func(e job.PluginEvent) string { return e.Digest }),
		text(func(e job.PluginEvent) string { return string(e.Trigger) }),
		text(func(e job.PluginEvent) string { return e.Actor }),
		text(func(e job.PluginEvent) string { return e.Reason }),
		postgres.Column(events, func(e job.PluginEvent) int32 { return int32(e.Count) }), //nolint:gosec // bounded by what happens in a minute
		postgres.Column(events, func(e job.PluginEvent) pgtype.Text { return postgres.Document([]byte(e.Details)) }))
}

// PluginEvents returns the events that the filter selects, newest first.
func (s *Store) PluginEvents(ctx context.Context, f job.PluginEventFilter) ([]job.PluginEvent, error) {
	before := pgtype.UUID{Bytes: f.Before.ID, Valid: f.Before.ID != job.ID{}}
	args := []any{f.Limit, f.Worker, string(f.Event), postgres.Instant(f.Before.At), before}
	if f.Plugin != "" {
		return pluginEvents(postgres.Read(ctx, s.db.StaleLists, "plugin_events_of", pgx.RowToStructByName[pluginEventRow], append(args, f.Plugin)...))
	}
	return pluginEvents(postgres.Read(ctx, s.db.StaleLists, "plugin_events", pgx.RowToStructByName[pluginEventRow], args...))
}

type pluginEventRow struct {
	ID      job.ID
	At      time.Time
	Worker  string
	Host    string
	Plugin  string
	Event   job.PluginEventKind
	Version string
	Digest  string
	Trigger job.SwapTrigger
	Actor   string
	Reason  string
	Count   int
	Details *string
}

func pluginEvents(rows []pluginEventRow, err error) (events []job.PluginEvent, _ error) {
	for _, r := range rows {
		e := job.PluginEvent{
			ID: r.ID, At: r.At.UTC(), Worker: r.Worker, Host: r.Host, Plugin: r.Plugin, Event: r.Event, Version: r.Version, Digest: r.Digest,
			Trigger: r.Trigger, Actor: r.Actor, Reason: r.Reason, Count: r.Count,
		}
		if r.Details != nil {
			e.Details = json.RawMessage(*r.Details)
		}
		events = append(events, e)
	}
	return events, err
}

// ForgetPluginEvents deletes up to limit events that are older, and as many commands. It
// returns how many of what there were more of.
func (s *Store) ForgetPluginEvents(ctx context.Context, olderThan time.Duration, limit int) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "forget_plugin_events", postgres.Interval(olderThan), limit)
}
