package runtime

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// sweepIdle is how long the deleter waits when nothing is old enough, another process is
	// at it, or the database takes no writes.
	sweepIdle = 10 * time.Second
	// sweepAim is how long a portion should take: long enough to be cheap, and so short that
	// it takes less than 100 ms even if the machine is suddenly several times as slow.
	sweepAim = 15 * time.Millisecond
	// sweepSlow is after how long a portion shows that the machine is busy: the next is half
	// as large as would fit.
	sweepSlow = 50 * time.Millisecond
	// The sizes of portions, and how much larger than the last one a portion is at most.
	leastPortion, firstPortion, mostPortion = 10, 100, 2500
	portionGrowth                           = 1.25
	// The deleter rests this many times as long as the last portion took: it uses a fifth of
	// a processor at most, or a quarter if it is far behind. What makes the database slow
	// makes it rest longer.
	restUsual, restBehind = 4, 3
	// farBehind is how long a portion may end before the newest job that is old enough.
	farBehind = time.Hour
	// A walk begins again after this time, for jobs that ended long after they were created,
	// and no sooner than when it has worked a twentieth of the time.
	walkAgain      = time.Hour
	walkAgainTimes = 20
	// recordsEvery is how often to look for records of acts and logins whose time is over, and
	// recordsPortion how many acts are deleted at once.
	recordsEvery   = time.Minute
	recordsPortion = 1000
)

// deleter deletes and blanks ended jobs when their time is over. It runs in every
// process that maintains; the database lets one of them work at a time. It also deletes old records of
// what people did, and their logins.
type deleter struct {
	cfg   Config
	store Store
	jobs  *jobs.Service
	walks []*walk
	// records is when to look for old records next.
	records time.Time
}

func newDeleter(cfg Config, store Store, service *jobs.Service) *deleter {
	return &deleter{
		cfg: cfg, store: store, jobs: service, walks: []*walk{newWalk(job.WalkEnded), newWalk(job.WalkDead)},
		records: time.Now().Add(loop.Jittered(recordsEvery)),
	}
}

func (d *deleter) run(ctx context.Context) {
	for {
		next := slices.MinFunc(d.walks, func(a, b *walk) int { return a.next.Compare(b.next) })
		select {
		case <-ctx.Done():
			return
		case <-d.jobs.Retention.Changed:
			for _, w := range d.walks {
				w.next = time.Now()
			}
		case <-time.After(time.Until(next.next)):
			d.step(ctx, next)
		case <-time.After(time.Until(d.records)):
			d.records = time.Now().Add(d.jobs.Pace.Pause(job.RoleMaintenance, recordsEvery))
			if err := d.forgetRecords(ctx); err != nil && ctx.Err() == nil {
				d.cfg.Log.Warn("old records of acts and logins could not be deleted; trying again later", slog.Any("error", err))
			}
		}
	}
}

// forgetRecords deletes the records whose time is over, a portion at a time.
func (d *deleter) forgetRecords(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if _, err := d.store.ForgetLogins(ctx); err != nil {
		return err
	}
	keep := d.jobs.Retention.Policies().Audit
	if keep == nil {
		return nil
	}
	for deleted := recordsPortion; deleted == recordsPortion; {
		var err error
		if deleted, err = d.store.ForgetActs(ctx, *keep, recordsPortion); err != nil {
			return err
		}
	}
	return nil
}

// step looks at the next portion of a walk.
func (d *deleter) step(ctx context.Context, w *walk) {
	began := time.Now()
	swept, err := d.sweep(ctx, w)
	if err != nil {
		if ctx.Err() == nil {
			d.cfg.Log.Warn("jobs whose time is over could not be deleted; trying again", slog.Any("error", err))
		}
		swept = job.Swept{}
	}
	w.after(swept, time.Since(began))
	var overdue, behind time.Duration
	for _, w := range d.walks {
		overdue, behind = max(overdue, w.last.Late), max(behind, w.last.Behind)
	}
	d.jobs.Metrics.Swept(overdue, behind)
}

// sweep does that in the database.
func (d *deleter) sweep(ctx context.Context, w *walk) (job.Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	began := time.Now()
	policies := d.jobs.Retention.Policies()
	if _, some := policies.Shortest(w.of.States()...); !some {
		return job.Swept{}, d.forget(ctx, w)
	}
	w.forgotten = false
	swept, err := d.store.Sweep(ctx, w.of, policies, d.cfg.Worker.ID, w.portion, w.restart)
	if err != nil || swept.Mine {
		d.jobs.Metrics.Batch(metrics.OpSweep, int(swept.Jobs()), began, err)
	}
	d.jobs.Metrics.Disposed(metrics.Deleted, swept.Deleted)
	d.jobs.Metrics.Disposed(metrics.Blanked, swept.Blanked)
	return swept, err
}

// forget is for a walk by which nothing is deleted.
func (d *deleter) forget(ctx context.Context, w *walk) error {
	if w.forgotten {
		return nil
	}
	err := d.store.ForgetWalk(ctx, w.of)
	w.forgotten = err == nil
	return err
}

// walk is how this process goes through one of the walks: in what portions, and when.
type walk struct {
	of      job.Walk
	portion int
	restart bool
	// forgotten says that the database knows that nothing is deleted by it.
	forgotten bool
	worked    time.Duration // by this process, since the walk began
	last      job.Swept
	next      time.Time
}

func newWalk(of job.Walk) *walk {
	return &walk{of: of, portion: firstPortion, next: time.Now().Add(loop.Jittered(sweepIdle))}
}

// after learns from a portion that took so long, and decides when the next one is.
func (w *walk) after(swept job.Swept, took time.Duration) {
	w.last = swept
	rest := loop.Jittered(sweepIdle)
	if swept.Mine {
		if w.restart {
			w.worked, w.restart = 0, false
		}
		w.worked += took
		w.portion = nextPortion(w.portion, swept.Jobs(), took)
		switch {
		case swept.Reached:
			w.restart = swept.Walked > max(walkAgain, walkAgainTimes*w.worked)
		case swept.Behind > farBehind:
			rest = restBehind * took
		default:
			rest = restUsual * took
		}
	}
	w.next = time.Now().Add(rest)
}

// nextPortion is the size with which a portion takes sweepAim if each job takes as long as in
// the last one. It grows slowly, and shrinks at once. A portion of which less than half was
// deleted says nothing about a larger one.
func nextPortion(portion int, done int64, took time.Duration) int {
	fits := float64(portion) * float64(sweepAim) / float64(max(took, time.Microsecond))
	switch {
	case took > sweepSlow:
		fits /= 2
	case fits > float64(portion) && done < int64(portion)/2:
		return portion
	}
	return int(max(min(fits, portionGrowth*float64(portion), mostPortion), leastPortion))
}
