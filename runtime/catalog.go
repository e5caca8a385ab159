package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reloadAfter bounds how stale the catalog's view of other processes' types
// is when hints are lost; reloadPause is the least time between two looks for an unknown type.
const (
	reloadAfter = 30 * time.Second
	reloadPause = 250 * time.Millisecond
)

// catalog knows every job type: those our own plugins declare, with the
// configuration laid over them, and those that other processes have written
// to the database.
type catalog struct {
	store    Store
	handlers Plugins
	log      *slog.Logger
	cfg      Config

	telemetry *telemetry
	// announce tells the other processes of a declaration.
	announce func()

	mu       sync.RWMutex
	types    map[string]job.TypeSpec
	loaded   time.Time
	declared []job.TypeSpec
}

func newCatalog(store Store, handlers Plugins, cfg Config, t *telemetry) *catalog {
	return &catalog{
		store: store, handlers: handlers, log: cfg.Log, cfg: cfg, telemetry: t, announce: func() {},
		types: make(map[string]job.TypeSpec),
	}
}

// declare writes our plugins' types to the database when they have changed.
func (c *catalog) declare(ctx context.Context) error {
	specs := c.handlers.Types()
	for i := range specs {
		specs[i] = c.cfg.Resolve(specs[i])
	}
	c.mu.RLock()
	same := reflect.DeepEqual(specs, c.declared)
	c.mu.RUnlock()
	if same {
		return nil
	}
	if err := c.store.DeclareTypes(ctx, specs); err != nil {
		return err
	}
	c.announce()
	served, err := json.Marshal(c.handlers.Pools())
	if err != nil {
		return fmt.Errorf("describe worker: %w", err)
	}
	if err := c.store.DescribeWorker(ctx, c.cfg.Worker.ID, served); err != nil {
		return err
	}
	c.telemetry.declare(specs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declared = specs
	for _, spec := range specs {
		c.types[spec.Type] = spec
	}
	return nil
}

// load reads what all processes have declared.
func (c *catalog) load(ctx context.Context) error {
	specs, err := c.store.Catalog(ctx)
	if err != nil {
		return err
	}
	c.telemetry.declare(specs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded = time.Now()
	for _, spec := range specs {
		c.types[spec.Type] = spec
	}
	for _, spec := range c.declared { // our own word stands for our own plugins
		c.types[spec.Type] = spec
	}
	return nil
}

// run keeps the catalog and the database in step.
func (c *catalog) run(ctx context.Context, changed signal) {
	for changed.wait(ctx, jittered(reloadAfter)) {
		try, cancel := context.WithTimeout(ctx, settleTimeout)
		err := c.declare(try)
		if err == nil {
			err = c.load(try)
		}
		cancel()
		c.telemetry.failed(opTypes, err)
		if err != nil && ctx.Err() == nil {
			c.log.Warn("job types could not be declared or read; trying again", slog.Any("error", err))
			pauseFor(ctx, jittered(time.Second))
			changed.raise()
		}
	}
}

// spec returns what is known of a type, looking into the database once more
// for one that is not known. It returns job.ErrUnknownType if nobody declared
// it.
func (c *catalog) spec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	spec, ok, age := c.known(jobType)
	if !ok && age > reloadPause {
		if err := c.load(ctx); err != nil {
			return job.TypeSpec{}, err
		}
		spec, ok, _ = c.known(jobType)
	}
	if !ok {
		return job.TypeSpec{}, job.ErrUnknownType
	}
	return spec, nil
}

func (c *catalog) known(jobType string) (spec job.TypeSpec, ok bool, age time.Duration) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	spec, ok = c.types[jobType]
	return spec, ok, time.Since(c.loaded)
}

// policy returns how a type is retried; the configured default for a type that
// nobody has declared.
func (c *catalog) policy(jobType string) job.RetryPolicy {
	if spec, ok, _ := c.known(jobType); ok {
		return spec.Retry
	}
	return c.cfg.Resolve(job.TypeSpec{Type: jobType}).Retry
}
