package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// declareInterval is how often to look for changes of the plugins' types that nobody
// announced.
const declareInterval = 30 * time.Second

// declarer writes what this worker's plugins declare to the database.
type declarer struct {
	cfg     Config
	store   Store
	plugins Plugins
	jobs    *jobs.Service
	changed loop.Signal // a pool came up, or its plugin was replaced

	declared []job.TypeSpec
}

func (d *declarer) run(ctx context.Context) {
	for d.changed.Wait(ctx, loop.Jittered(declareInterval)) {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		err := d.declare(try)
		cancel()
		d.jobs.Metrics.Failed(metrics.OpTypes, err)
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("job types could not be declared; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
			d.changed.Raise()
		}
	}
}

// declare writes the types when they have changed. It is called by one goroutine at a
// time.
func (d *declarer) declare(ctx context.Context) error {
	specs := d.plugins.Types()
	for i := range specs {
		specs[i] = d.cfg.Resolve(specs[i])
	}
	if reflect.DeepEqual(specs, d.declared) {
		return nil
	}
	if err := d.store.DeclareTypes(ctx, specs); err != nil {
		return err
	}
	d.jobs.Hints.Send(job.TypesDeclared)
	served, err := json.Marshal(d.plugins.Pools())
	if err != nil {
		return fmt.Errorf("describe worker: %w", err)
	}
	if err := d.store.DescribeWorker(ctx, d.cfg.Worker.ID, served); err != nil {
		return err
	}
	d.declared = specs
	d.jobs.JobTypes.Declare(specs)
	return nil
}
