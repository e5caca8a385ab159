package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sync/errgroup"
)

const riverFill = 5000

// The settings of River's driver. Times are in milliseconds.
const (
	riverWorkers  = "MaxWorkers"
	riverPoll     = "FetchPollInterval"
	riverCooldown = "FetchCooldown"
	// riverPool is how many connections run jobs; those who insert jobs have others.
	riverPool = "MaxConns"
)

// riverWork are settings for running jobs. The first are those of River's own benchmark
// (cmd/river/riverbench), whose comments say that they are much faster than the defaults.
var riverWork = []settings{
	{riverWorkers: 2000, riverPoll: 20, riverCooldown: 2, riverPool: 10},
	{riverWorkers: 500, riverPoll: 20, riverCooldown: 2, riverPool: 10},
	{riverWorkers: 1000, riverPoll: 20, riverCooldown: 2, riverPool: 10},
	{riverWorkers: 5000, riverPoll: 20, riverCooldown: 2, riverPool: 10},
	{riverWorkers: 10_000, riverPoll: 20, riverCooldown: 2, riverPool: 10},
	{riverWorkers: 2000, riverPoll: 5, riverCooldown: 1, riverPool: 10},
	{riverWorkers: 5000, riverPoll: 5, riverCooldown: 1, riverPool: 10},
	{riverWorkers: 2000, riverPoll: 20, riverCooldown: 2, riverPool: 4},
	{riverWorkers: 5000, riverPoll: 20, riverCooldown: 2, riverPool: 4},
}

type noop struct{}

func (noop) Kind() string { return "noop" }

type noopWorker struct{ river.WorkerDefaults[noop] }

func (noopWorker) Work(context.Context, *river.Job[noop]) error { return nil }

// riverDriver carries out one order.
type riverDriver struct {
	order
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	// events has an event for every settled job.
	events <-chan *river.Event
	// warmed is how many jobs it took to warm up.
	warmed int
}

// driveRiver is the driver process of River.
func driveRiver(ctx context.Context, text string, in io.Reader, out io.Writer) (err error) {
	d := &riverDriver{}
	if err := json.Unmarshal([]byte(text), &d.order); err != nil {
		return err
	}
	if err := d.open(ctx); err != nil {
		return err
	}
	defer d.pool.Close()
	act, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	lines, say := bufio.NewReader(in), json.NewEncoder(out)
	if err := say.Encode(report{Ready: true, Done: d.warmed}); err != nil {
		return err
	}
	if _, err := lines.ReadString('\n'); err != nil {
		return err
	}
	p := &pace{began: time.Now()}
	done, err := act(ctx, p)
	if err != nil {
		return err
	}
	if err := say.Encode(report{Done: done, Seconds: time.Since(p.began).Seconds(), Pace: p.beats}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, lines)
	if d.events != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, d.client.StopAndCancel(stop))
	}
	return err
}

func (d *riverDriver) open(ctx context.Context) error {
	cfg, err := pgxpool.ParseConfig(d.URL)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(d.Set[riverPool] + min(d.Callers, d.Set[connectionsSetting]))
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	settings := &river.Config{
		Logger:            slog.New(slog.DiscardHandler),
		FetchCooldown:     time.Duration(d.Set[riverCooldown]) * time.Millisecond,
		FetchPollInterval: time.Duration(d.Set[riverPoll]) * time.Millisecond,
	}
	if d.Do == doWork || d.Do == doLife {
		workers := d.Set[riverWorkers]
		if d.Single {
			workers = 1
			settings.FetchCooldown, settings.FetchPollInterval = river.FetchCooldownMin, river.FetchPollIntervalMin
		}
		settings.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
		settings.Workers = river.NewWorkers()
		river.AddWorker(settings.Workers, noopWorker{})
	}
	d.client, err = river.NewClient(riverpgxv5.New(d.pool), settings)
	return err
}

// prepare does everything that is not measured. It returns the function to measure.
func (d *riverDriver) prepare(ctx context.Context) (func(context.Context, *pace) (int, error), error) {
	switch d.Do {
	case doMigrate:
		return d.migrate, nil
	case doFill:
		d.Callers, d.Batch = 2, riverFill
		return d.insertAll, nil
	case doInsert:
		return d.insertAll, d.warmUp(ctx)
	case doWork:
		d.subscribe()
		return func(ctx context.Context, p *pace) (int, error) {
			if err := d.client.Start(ctx); err != nil {
				return 0, err
			}
			return d.await(ctx, d.Jobs, p)
		}, nil
	case doLife:
		d.subscribe()
		if err := d.client.Start(ctx); err != nil {
			return nil, err
		}
		if err := d.warmUp(ctx); err != nil {
			return nil, err
		}
		_, err := d.await(ctx, d.warmed, &pace{began: time.Now()})
		return d.live, err
	}
	return nil, fmt.Errorf("unknown order %q", d.Do)
}

func (d *riverDriver) live(ctx context.Context, p *pace) (done int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := d.insertAll(ctx, p)
		return err
	})
	group.Go(func() (err error) {
		done, err = d.await(ctx, d.Jobs, p)
		return err
	})
	err = group.Wait()
	return done, err
}

func (d *riverDriver) migrate(ctx context.Context, _ *pace) (int, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(d.pool), nil)
	if err != nil {
		return 0, err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return 0, err
}

func (d *riverDriver) insertAll(ctx context.Context, _ *pace) (int, error) {
	return d.insert(ctx, d.Jobs)
}

// warmUp inserts jobs that the order does not count.
func (d *riverDriver) warmUp(ctx context.Context) (err error) {
	for end := time.Now().Add(warmUpWithin); err == nil && time.Now().Before(end) && d.warmed < d.Jobs; {
		var jobs int
		jobs, err = d.insert(ctx, d.Callers*d.Batch)
		d.warmed += jobs
	}
	return err
}

// insert inserts jobs with all callers concurrently.
func (d *riverDriver) insert(ctx context.Context, jobs int) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	for caller := range d.Callers {
		group.Go(func() error {
			for at := caller * d.Batch; at < jobs; at += d.Callers * d.Batch {
				if err := d.call(ctx, at, min(d.Batch, jobs-at)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return jobs, group.Wait()
}

func (d *riverDriver) call(ctx context.Context, at, jobs int) error {
	if d.Batch == 1 {
		_, err := d.client.Insert(ctx, noop{}, nil)
		return err
	}
	batch := make([]river.InsertManyParams, jobs)
	for i := range batch {
		batch[i] = river.InsertManyParams{Args: noop{}}
		if d.Priorities > 1 {
			batch[i].InsertOpts = &river.InsertOpts{Priority: 1 + (at+i)%d.Priorities}
		}
	}
	_, err := d.client.InsertManyFast(ctx, batch)
	return err
}

func (d *riverDriver) subscribe() {
	// The channel has room for all jobs, including those of the warm-up: events that do
	// not fit are lost.
	d.events, _ = d.client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: 2*d.Jobs + d.Callers*d.Batch,
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed},
	})
}

// await returns when so many jobs are settled, or when the time limit is reached.
func (d *riverDriver) await(ctx context.Context, jobs int, p *pace) (done int, err error) {
	var limit <-chan time.Time
	if d.Limit > 0 {
		limit = time.After(time.Duration(d.Limit * float64(time.Second)))
	}
	for done < jobs {
		select {
		case event := <-d.events:
			if event == nil || event.Kind != river.EventKindJobCompleted {
				return done, errors.New("a job has failed")
			}
			p.add()
			done++
		case <-limit:
			return done, nil
		case <-ctx.Done():
			return done, context.Cause(ctx)
		}
	}
	return done, nil
}
