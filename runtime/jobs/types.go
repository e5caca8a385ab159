package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// reloadAfter is how often to read other processes' types even if nobody has seen that
	// they have changed.
	reloadAfter = 10 * time.Minute
	// reloadPause is the least time between two looks for an unknown type.
	reloadPause = 250 * time.Millisecond
	// reloadTimeout bounds one look.
	reloadTimeout = 10 * time.Second
)

// Types are all known job types: those that the plugins of this process have
// declared, and those that other processes have written to the database.
type Types struct {
	store   Store
	cfg     Config
	metrics *metrics.Metrics
	// looking shares one look for unknown types among the submissions that wait for it.
	looking singleflight.Group

	mu     sync.RWMutex
	known  map[string]job.TypeSpec
	own    []job.TypeSpec
	loaded time.Time
}

// Declare sets the types of this process's own plugins. They outrank what the
// database says.
func (t *Types) Declare(own []job.TypeSpec) {
	t.metrics.Declare(own)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = own
	for _, spec := range own {
		t.known[spec.Type] = spec
	}
}

// Load reads what all processes have declared.
func (t *Types) Load(ctx context.Context) error {
	specs, err := t.store.Catalog(ctx)
	if err != nil {
		return err
	}
	t.metrics.Declare(specs)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded = time.Now()
	for _, spec := range specs {
		t.known[spec.Type] = spec
	}
	for _, spec := range t.own {
		t.known[spec.Type] = spec
	}
	return nil
}

// run reads the types again when others have declared some.
func (t *Types) run(ctx context.Context, declared loop.Signal) {
	for declared.Wait(ctx, loop.Jittered(reloadAfter)) {
		try, cancel := context.WithTimeout(ctx, reloadTimeout)
		err := t.Load(try)
		cancel()
		t.metrics.Failed(metrics.OpTypes, err)
		if err != nil && ctx.Err() == nil {
			t.cfg.Log.Warn("job types could not be read; trying again", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(time.Second))
			declared.Raise()
		}
	}
}

// spec looks into the database for a type that is not known.
func (t *Types) spec(ctx context.Context, jobType string) (job.TypeSpec, error) {
	spec, ok, age := t.lookUp(jobType)
	if !ok && age > reloadPause {
		_, err, _ := t.looking.Do("", func() (any, error) {
			// The first submission may be given up while others still wait.
			try, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadTimeout)
			defer cancel()
			return nil, t.Load(try)
		})
		if err != nil {
			return job.TypeSpec{}, err
		}
		spec, ok, _ = t.lookUp(jobType)
	}
	if !ok {
		return job.TypeSpec{}, job.ErrUnknownType
	}
	return spec, nil
}

func (t *Types) lookUp(jobType string) (spec job.TypeSpec, ok bool, age time.Duration) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	spec, ok = t.known[jobType]
	return spec, ok, time.Since(t.loaded)
}

// RetryPolicy returns how a type is retried: the configured default for a type
// that nobody has declared.
func (t *Types) RetryPolicy(jobType string) job.RetryPolicy {
	if spec, ok, _ := t.lookUp(jobType); ok {
		return spec.Retry
	}
	return t.cfg.Resolve(job.TypeSpec{Type: jobType}).Retry
}
