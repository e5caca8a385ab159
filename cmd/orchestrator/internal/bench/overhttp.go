package bench

import (
	"context"
	"fmt"
	"time"
)

// warmUpWithin is enough time to open connections and prepare statements.
const warmUpWithin = time.Second

func submit(ctx context.Context, r *run, jobs int) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	address := r.server.address()
	singles, batches := r.lab.Keys.singles(address, unserved), r.lab.Keys.batches(address, unserved, r.lab.Batch)
	warm := crowd{address: address, clients: 64, requests: singles}
	if _, err := warm.warmUp(ctx, warmUpWithin); err != nil {
		return err
	}
	for _, c := range []struct {
		name    string
		crowd   crowd
		perCall int
		jobs    int
	}{
		{"1 client", crowd{address: address, clients: 1, requests: singles}, 1, jobs / 8},
		{"8 clients", crowd{address: address, clients: 8, requests: singles}, 1, jobs / 2},
		{"64 clients", crowd{address: address, clients: 64, requests: singles}, 1, jobs},
		{"256 clients", crowd{address: address, clients: 256, requests: singles}, 1, jobs},
		{r.lab.inBatches(), crowd{address: address, clients: 4, requests: batches}, r.lab.Batch, 2 * jobs},
	} {
		err := r.phase(ctx, c.name, func(time.Time) (int, error) {
			got, err := c.crowd.flatOut(ctx, c.jobs/c.perCall)
			jobs := len(got.took) * c.perCall
			if err == nil {
				r.record(c.name, "rate", "jobs/s", float64(jobs)/got.elapsed.Seconds())
				r.record(c.name, "latency p50", "ms", milliseconds(got.latency(0.5)))
				r.record(c.name, "latency p99", "ms", milliseconds(got.latency(0.99)))
			}
			return jobs, err
		})
		if err != nil {
			return err
		}
	}
	return r.stop("at the end")
}

const (
	e2eClients = 64
	// steadyWithin is how long clients submit at half the peak rate.
	steadyWithin = 5 * time.Second
)

func endToEnd(ctx context.Context, r *run, jobs int) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	address := r.server.address()
	one := crowd{address: address, clients: e2eClients, requests: r.lab.Keys.singles(address, noop)}
	warm, err := one.warmUp(ctx, warmUpWithin)
	if err != nil {
		return err
	}
	total := len(warm.took)
	if err := r.await(ctx, total); err != nil {
		return err
	}

	peak, err := r.throughput(ctx, "64 clients, one job a request", one, jobs, 1, &total)
	if err != nil {
		return err
	}
	many := crowd{address: address, clients: 4, requests: r.lab.Keys.batches(address, noop, r.lab.Batch)}
	if _, err := r.throughput(ctx, r.lab.inBatches(), many, 2*jobs, r.lab.Batch, &total); err != nil {
		return err
	}
	if err := r.steady(ctx, one, peak/2, &total); err != nil {
		return err
	}
	if err := r.stop("at the end"); err != nil {
		return err
	}
	return r.db.check(ctx, total)
}

// throughput records the rate at which jobs pass, from the first request to the last
// settlement, and returns it.
func (r *run) throughput(ctx context.Context, name string, by crowd, jobs, perCall int, total *int) (rate float64, err error) {
	err = r.phase(ctx, name, func(began time.Time) (int, error) {
		got, err := by.flatOut(ctx, jobs/perCall)
		if err != nil {
			return 0, err
		}
		jobs := len(got.took) * perCall
		*total += jobs
		if err := r.await(ctx, *total); err != nil {
			return 0, err
		}
		last, err := r.db.lastEnd(ctx)
		if err != nil {
			return 0, err
		}
		rate = float64(jobs) / last.Sub(began).Seconds()
		r.record(name, "rate", "jobs/s", rate)
		r.record(name, "submitted at", "jobs/s", float64(jobs)/got.elapsed.Seconds())
		return jobs, nil
	})
	return rate, err
}

// steady submits at a rate that the orchestrator can sustain, and records how long after
// its due time each job was settled.
func (r *run) steady(ctx context.Context, by crowd, rate float64, total *int) error {
	const name = "at half that rate"
	by.jobs = true
	var got sent
	err := r.phase(ctx, name, func(time.Time) (_ int, err error) {
		if got, err = by.steadily(ctx, rate, steadyWithin); err != nil {
			return 0, err
		}
		*total += len(got.took)
		return len(got.took), r.await(ctx, *total)
	})
	if err != nil {
		return err
	}
	done, err := r.db.endsOf(ctx, got.due)
	if err != nil {
		return err
	}
	r.record(name, "offered", "jobs/s", rate)
	r.record(name, "submitted after p99", "ms", milliseconds(got.latency(0.99)))
	r.record(name, "done after p50", "ms", milliseconds(percentile(done, 0.5)))
	r.record(name, "done after p99", "ms", milliseconds(percentile(done, 0.99)))
	r.record(name, "done after p99.9", "ms", milliseconds(percentile(done, 0.999)))
	return nil
}

// inBatches is the name of the cases with batches.
func (l *lab) inBatches() string { return fmt.Sprintf("4 clients, %d a batch", l.Batch) }

// phase brings the database to rest, calls measure, and records what a job cost.
func (r *run) phase(ctx context.Context, name string, measure func(began time.Time) (jobs int, err error)) error {
	r.lab.say(name)
	if err := r.db.rest(ctx, !r.lab.Fresh); err != nil {
		return err
	}
	before, err := r.begin(ctx)
	if err != nil {
		return err
	}
	jobs, err := measure(before.began)
	if err != nil {
		return err
	}
	return r.finish(ctx, before, name, jobs)
}
