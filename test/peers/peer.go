package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// peer is a job queue other than Holdfast.
type peer struct {
	name, version string
	// settings describes its configuration on the page.
	settings string
	// defaults are its settings unless a sweep finds better ones, and sweeps what to try,
	// by the sweep's name.
	defaults   settings
	sweeps     map[string][]settings
	guarantees []Guarantee
	// driver is the command that carries out an order.
	driver []string
	// queued and done are statements that count jobs. done counts only those that
	// needed one attempt.
	queued, done string
	// deletes means that finished jobs leave no row, so done has nothing to count, except
	// in the scenario kept.
	deletes bool
}

func (p peer) candidates(sweep string) []settings { return p.sweeps[sweep] }

func (p peer) title() string { return p.name }

// measure runs a scenario in a database of its own.
func (p peer) measure(ctx context.Context, l *lab, s scenario, jobs int, chosen choices) (readings []reading, err error) {
	db, err := l.cluster.create(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.drop(ctx)) }()
	if err := obey(ctx, p.driver, order{Do: doMigrate, URL: db.address, Kept: s.kept, Set: p.defaults}); err != nil {
		return nil, err
	}
	if s.fill {
		fill := order{Do: doFill, URL: db.address, Jobs: jobs, Set: p.defaults}
		if s.pinned {
			fill.Priorities = pinnedClasses
		}
		if err := obey(ctx, p.driver, fill); err != nil {
			return nil, err
		}
	}
	if s.pinned {
		release, err := db.pin(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	total := 0
	for _, c := range s.cases {
		o := c.order
		o.URL, o.Jobs, o.Kept, o.Set = db.address, jobs*c.times, s.kept, p.defaults.with(chosen.of(c))
		if size, ok := o.Set[batchSetting]; ok && o.Batch > 1 {
			o.Batch = size
		}
		got, done, err := p.phase(ctx, db, o, c.name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		total += done
		readings = append(readings, got...)
	}
	return readings, p.check(ctx, db, s, total, jobs)
}

// phase carries out an order. It returns the cost, and the number of finished jobs,
// including those of the warm-up.
func (p peer) phase(ctx context.Context, db *database, o order, name string) (readings []reading, done int, err error) {
	ctx, cancel := bounded(ctx, o.Do)
	defer cancel()
	d, err := startDriver(ctx, p.driver, o)
	if err != nil {
		return nil, 0, err
	}
	defer d.kill()
	if err := db.rest(ctx); err != nil {
		return nil, 0, err
	}
	before, err := read(ctx, db, d.process.Process.Pid)
	if err != nil {
		return nil, 0, err
	}
	r, err := d.act(ctx)
	if err != nil {
		return nil, 0, err
	}
	after, err := read(ctx, db, d.process.Process.Pid)
	if err != nil {
		return nil, 0, err
	}
	add := func(figure, unit string, value float64) {
		readings = append(readings, reading{name, figure, unit, value})
	}
	jobs := float64(r.Done)
	add(rate, "jobs/s", jobs/r.Seconds)
	if before.known && after.known {
		programs := float64((after.programs - before.programs).Nanoseconds()) / 1000 / jobs
		postgres := float64((after.postgres - before.postgres).Nanoseconds()) / 1000 / jobs
		add(cpu, "µs/job", programs+postgres)
		add(cpuPrograms, "µs/job", programs)
		add(cpuPostgres, "µs/job", postgres)
	}
	add(wal, "bytes/job", float64(after.written-before.written)/jobs)
	if o.Limit > 0 {
		first, last := r.tenths()
		add(firstTenth, "jobs/s", first)
		add(lastTenth, "jobs/s", last)
		add(doneShare, "%", 100*jobs/float64(o.Jobs))
	} else if r.Done != o.Jobs {
		return nil, 0, fmt.Errorf("%d jobs instead of %d", r.Done, o.Jobs)
	}
	return readings, d.warmed + r.Done, d.end()
}

// check makes sure that every job was done, or is queued if the phase only inserts
// jobs. After a time limit, the exact number is unknown.
func (p peer) check(ctx context.Context, db *database, s scenario, total, jobs int) error {
	switch {
	case s.cases[0].order.Do == doInsert:
		return db.check(ctx, p.queued, total)
	case s.pinned && total < jobs:
		return nil
	case p.deletes && !s.kept:
		return db.check(ctx, p.queued, 0)
	default:
		return db.check(ctx, p.done, total)
	}
}

// meter holds the resources used up to some moment.
type meter struct {
	programs, postgres time.Duration
	known              bool
	written            int64
}

func read(ctx context.Context, db *database, driver int) (m meter, err error) {
	var known, knownPostgres bool
	m.programs, known = rig.CPUTime(driver)
	m.postgres, knownPostgres = rig.CPUTime(db.postmaster)
	m.known = known && knownPostgres
	m.written, err = db.written(ctx)
	return m, err
}
