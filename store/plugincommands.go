package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// DescribePlugins records the plugins of a worker for all orchestrators.
func (s *Store) DescribePlugins(ctx context.Context, worker string, plugins []v1.Plugin) error {
	text, err := json.Marshal(plugins)
	if err != nil {
		return err
	}
	return s.db.Worker.Do(ctx, "describe_plugins", worker, string(text))
}

// PluginsEverywhere returns the plugins of all workers that have not stopped.
func (s *Store) PluginsEverywhere(ctx context.Context) ([]v1.Orchestrator, error) {
	type row struct {
		WorkerID      string
		Host          string
		Condition     job.Condition
		LastHeartbeat time.Time
		DescribedAt   *time.Time
		Plugins       *string
	}
	rows, err := postgres.Read(ctx, s.db.Lists, "plugins_everywhere", pgx.RowToStructByName[row])
	if err != nil {
		return nil, err
	}
	all := make([]v1.Orchestrator, 0, len(rows))
	for _, r := range rows {
		o := v1.Orchestrator{
			WorkerID: r.WorkerID, Host: r.Host, Condition: r.Condition, LastHeartbeat: r.LastHeartbeat.UTC(), DescribedAt: utc(r.DescribedAt),
			Plugins: []v1.Plugin{},
		}
		if r.Plugins != nil {
			if err := json.Unmarshal([]byte(*r.Plugins), &o.Plugins); err != nil {
				return nil, err
			}
		}
		all = append(all, o)
	}
	return all, nil
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// CommandPlugin stores a command for all workers that have the plugin now. If there is none,
// it returns job.ErrNoPlugin.
func (s *Store) CommandPlugin(ctx context.Context, c job.PluginCommand) (job.PluginCommand, error) {
	workers, err := postgres.ChangeOne[int](ctx, s.db.Submissions, "command_plugin", postgres.UUID(c.ID), c.Plugin, string(c.Verb), c.Force,
		c.Actor, c.Reason, postgres.Interval(c.Within), c.Worker, c.Host)
	if err == nil && workers == 0 {
		err = job.ErrNoPlugin
	}
	if err != nil {
		return job.PluginCommand{}, err
	}
	return s.PluginCommand(ctx, c.ID)
}

// PluginCommand returns a command with what has become of it. The error is job.ErrNoCommand
// if there is none.
func (s *Store) PluginCommand(ctx context.Context, id job.ID) (job.PluginCommand, error) {
	type row struct {
		Plugin        string
		Verb          job.PluginVerb
		Force         bool
		Actor         string
		Reason        string
		AskedAt       time.Time
		Deadline      time.Time
		Worker        string
		Host          string
		Result        job.PluginResult
		OutcomeReason string
		TakenAt       *time.Time
		EndedAt       *time.Time
		Swap          *string
	}
	rows, err := postgres.Read(ctx, s.db.Lists, "plugin_command", pgx.RowToStructByName[row], postgres.UUID(id))
	if err == nil && len(rows) == 0 {
		err = job.ErrNoCommand
	}
	if err != nil {
		return job.PluginCommand{}, err
	}
	first := rows[0]
	c := job.PluginCommand{
		ID: id, Plugin: first.Plugin, Verb: first.Verb, Force: first.Force, Actor: first.Actor, Reason: first.Reason,
		AskedAt: first.AskedAt.UTC(), Deadline: first.Deadline.UTC(),
	}
	for _, r := range rows {
		o := job.PluginOutcome{
			Worker: r.Worker, Host: r.Host, Result: r.Result, Reason: r.OutcomeReason, TakenAt: utc(r.TakenAt), EndedAt: utc(r.EndedAt),
		}
		if r.Swap != nil {
			o.Swap = json.RawMessage(*r.Swap)
		}
		c.Outcomes = append(c.Outcomes, o)
	}
	return c, nil
}

// TakePluginCommands returns the commands for a worker that it has not got before. If the
// answer is lost, nobody carries them out.
func (s *Store) TakePluginCommands(ctx context.Context, worker string) ([]job.TakenCommand, error) {
	type row struct {
		ID     job.ID
		Plugin string
		Verb   job.PluginVerb
		Force  bool
		Actor  string
		Within pgtype.Interval
	}
	rows, err := postgres.Change(ctx, s.db.Worker, "take_plugin_commands", pgx.RowToStructByName[row], worker)
	var taken []job.TakenCommand
	for _, r := range rows {
		taken = append(taken, job.TakenCommand{
			ID: r.ID, Plugin: r.Plugin, Verb: r.Verb, Force: r.Force, Actor: r.Actor, Within: postgres.Duration(r.Within),
		})
	}
	return taken, err
}

// EndPluginCommand records what has become of a command at a worker. The first record counts.
func (s *Store) EndPluginCommand(ctx context.Context, id job.ID, worker string, outcome job.PluginOutcome) error {
	return s.db.Worker.Do(ctx, "end_plugin_command", postgres.UUID(id), worker, string(outcome.Result),
		job.CleanText(outcome.Reason, maxEventText), postgres.Document(outcome.Swap))
}
