package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// describeInterval is how often to look whether the plugins have changed. Figures that
	// always change while jobs run are described every figuresInterval.
	describeInterval = time.Second
	figuresInterval  = 3 * time.Second
	// leastDescribePause bounds how often plugins to which much happens are described.
	leastDescribePause = 200 * time.Millisecond
	// describeAgain is when to describe plugins that have not changed, in case the database has
	// lost what it had.
	describeAgain = 5 * time.Minute
)

// Status is where plugins are described.
type Status interface {
	DescribePlugins(ctx context.Context, worker string, plugins []v1.Plugin) error
}

// Describer tells the database what the plugins of a worker are like.
type Describer struct {
	// Report describes the plugins, without secrets.
	Report func() []v1.Plugin
	// Journal wakes it when something has happened.
	Journal *Journal
	Store   Status
	Worker  job.Worker
	Log     *slog.Logger

	last, lastFigures []byte
	at                time.Time
}

// Run describes the plugins until the context ends, within moments of each change.
func (d *Describer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := d.describe(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("plugins could not be described; trying again", slog.Any("error", err))
			d.last = nil
		}
		loop.Pause(ctx, leastDescribePause)
		d.Journal.told.Wait(ctx, loop.Jittered(describeInterval))
	}
}

func (d *Describer) describe(ctx context.Context) error {
	plugins := d.Report()
	figures, err := json.Marshal(plugins)
	if err != nil {
		return err
	}
	rest, err := json.Marshal(withoutFigures(plugins))
	if err != nil {
		return err
	}
	since := time.Since(d.at)
	same := bytes.Equal(rest, d.last)
	if same && since < describeAgain && (since < figuresInterval-describeInterval || bytes.Equal(figures, d.lastFigures)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if err := d.Store.DescribePlugins(ctx, d.Worker.ID, plugins); err != nil {
		return err
	}
	d.last, d.lastFigures, d.at = rest, figures, time.Now()
	return nil
}

// withoutFigures leaves out what changes with every job.
func withoutFigures(plugins []v1.Plugin) []v1.Plugin {
	rest := make([]v1.Plugin, len(plugins))
	for i, p := range plugins {
		p.Running, p.Free, p.Isolated, p.Draining, p.Use = 0, 0, 0, 0, nil
		if p.Candidate != nil {
			candidate := *p.Candidate
			candidate.Running = 0
			p.Candidate = &candidate
		}
		rest[i] = p
	}
	return rest
}
