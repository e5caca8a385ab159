package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// commandPoll is how often to look for commands that no hint announced.
const commandPoll = 2 * time.Second

// Commands is where commands for plugins are.
type Commands interface {
	// TakePluginCommands returns those for a worker that it has not got before.
	TakePluginCommands(ctx context.Context, worker string) ([]job.TakenCommand, error)
	// EndPluginCommand records what has become of one.
	EndPluginCommand(ctx context.Context, id job.ID, worker string, outcome job.PluginOutcome) error
}

// Host carries out commands.
type Host interface {
	Report() []v1.Plugin
	Swap(ctx context.Context, name string, force bool) (v1.PluginSwap, error)
	Restart(ctx context.Context, name string) (v1.PluginSwap, error)
	Disable(ctx context.Context, name string) error
	Enable(ctx context.Context, name string, force bool) error
}

// Commander carries out the commands for a worker, each at most once.
type Commander struct {
	Store  Commands
	Host   Host
	Worker job.Worker
	// Wake is raised when there may be commands.
	Wake loop.Signal
	// Pause is how long to wait for that, given how long to wait at least.
	Pause func(time.Duration) time.Duration
	Log   *slog.Logger
}

// Run carries out commands until the context ends. Then it gives up those under way: a swap
// goes on, but nobody records its end.
func (c *Commander) Run(ctx context.Context) {
	var underway sync.WaitGroup
	defer underway.Wait()
	for c.Wake.Wait(ctx, c.Pause(commandPoll)) {
		try, cancel := context.WithTimeout(ctx, writeWithin)
		taken, err := c.Store.TakePluginCommands(try, c.Worker.ID)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("commands for plugins could not be read; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
		}
		for _, command := range taken {
			underway.Go(func() { c.carryOut(ctx, command) })
		}
	}
}

func (c *Commander) carryOut(ctx context.Context, command job.TakenCommand) {
	log := c.Log.With("plugin", command.Plugin, "command", string(command.Verb), "command_id", command.ID.String(), "by", command.Actor)
	log.Info("carrying out a command for all orchestrators")
	bounded, cancel := context.WithTimeout(job.WithActor(ctx, command.Actor), command.Within)
	outcome := c.do(bounded, command)
	cancel()
	if ctx.Err() != nil {
		return
	}
	log.Info("carried out a command for all orchestrators", "result", string(outcome.Result), "reason", outcome.Reason)
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, writeWithin)
		err := c.Store.EndPluginCommand(try, command.ID, c.Worker.ID, outcome)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Warn("the result of a command could not be recorded; trying again", slog.Any("error", err))
		loop.Pause(ctx, loop.Jittered(time.Second))
	}
}

func (c *Commander) do(ctx context.Context, command job.TakenCommand) job.PluginOutcome {
	var swap v1.PluginSwap
	var err error
	switch command.Verb {
	case job.SwapPlugin:
		swap, err = c.Host.Swap(ctx, command.Plugin, command.Force)
	case job.RestartPlugin:
		swap, err = c.Host.Restart(ctx, command.Plugin)
	case job.DisablePlugin:
		err = c.Host.Disable(ctx, command.Plugin)
	case job.EnablePlugin:
		err = c.Host.Enable(ctx, command.Plugin, command.Force)
	default:
		err = errors.New("this version of the orchestrator does not know the command")
	}
	outcome := job.PluginOutcome{Result: job.CommandDone}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		outcome.Result, outcome.Reason = job.CommandFailed, "it was not done by the deadline"
	case err != nil:
		outcome.Result, outcome.Reason = job.CommandRefused, err.Error()
	}
	if swap.BegunAt.IsZero() {
		return outcome
	}
	swap = c.plain(command.Plugin, swap)
	switch {
	case err != nil:
	case swap.Result == job.SwapRefused:
		outcome.Result, outcome.Reason = job.CommandRefused, swap.Reason
	case swap.Result != job.SwapPromoted:
		outcome.Result, outcome.Reason = job.CommandFailed, swap.Reason
	}
	outcome.Swap, _ = json.Marshal(swap)
	return outcome
}

// plain is the swap without what processes have printed.
func (c *Commander) plain(plugin string, swap v1.PluginSwap) v1.PluginSwap {
	for _, p := range c.Host.Report() {
		if p.Name == plugin && p.LastSwap != nil && p.LastSwap.BegunAt.Equal(swap.BegunAt) {
			return *p.LastSwap
		}
	}
	swap.Reason = "see the log of the orchestrator" // another swap has begun since
	return swap
}
