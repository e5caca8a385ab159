package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// look is the pause between two measurements.
	look = time.Second
	// drainWithin bounds the end of a step.
	drainWithin = 10 * time.Minute
	// restFor is how long the rest after a step is measured.
	restFor = 3 * time.Second
	// longHalf is how long half a run must take, so that jobs are deleted and their room is used
	// again.
	longHalf = 3 * kept
)

func (s *soak) run(ctx context.Context) error {
	s.began = time.Now()
	s.load = newLoad(s.orchestrator.Client, s.rate)
	var rows []row
	var half time.Duration
	for n := range steps {
		values, err := s.step(ctx, s.jobs/steps)
		if err != nil {
			return err
		}
		rows = append(rows, row{jobs: s.load.next, values: values})
		took := time.Since(s.began)
		if n == steps/2-1 {
			half = took
		}
		fmt.Printf("%9d jobs after %s: %s\n", s.load.next, took.Round(time.Second), describe(values))
	}
	took := time.Since(s.began)
	long := min(half, took-half) >= longHalf
	ends, err := s.ends(ctx, long)
	fmt.Printf("\n%d jobs in %s, %.0f a second. %s\n\n", s.load.next, took.Round(time.Second), float64(s.load.next)/took.Seconds(), ends)
	if err != nil {
		return err
	}
	held, err := show(os.Stdout, rows, long)
	if err == nil && !held {
		err = errNotHeld
	}
	return err
}

func describe(values []float64) string {
	var parts []string
	for i, f := range figures {
		parts = append(parts, f.name+" "+f.number(values[i]))
	}
	return strings.Join(parts, ", ")
}

// step submits jobs, waits until they have ended, and returns what was used.
func (s *soak) step(ctx context.Context, jobs int) ([]float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	peaks := make([]float64, len(figures))
	watching, unwatch := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for watching.Err() == nil {
			values, err := s.measure(watching)
			if err == nil {
				err = s.count(watching)
			}
			if err != nil && watching.Err() == nil {
				cancel(fmt.Errorf("measure: %w", err))
			}
			for i := range values {
				peaks[i] = max(peaks[i], values[i])
			}
			pause(watching, look)
		}
	})
	err := s.load.submit(ctx, jobs)
	if err == nil {
		err = s.drain(ctx)
	}
	unwatch()
	watcher.Wait()
	if err != nil {
		return nil, err
	}
	return s.rest(ctx, peaks)
}

// count looks how many jobs are open.
func (s *soak) count(ctx context.Context) error {
	var open int64
	err := s.db.QueryRow(ctx, "select (select count(*) from ready) + (select count(*) from leases) + (select count(*) from parked)").Scan(&open)
	s.load.open.Store(open)
	return err
}

// drain waits until no submitted job is open.
func (s *soak) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	for {
		var open int
		err := s.db.QueryRow(ctx, "select count(*) from jobs where finished_at is null and job_type <> $1", tickType).Scan(&open)
		if err != nil {
			return fmt.Errorf("drain: %w", err)
		}
		if open == 0 {
			return nil
		}
		pause(ctx, look)
		if ctx.Err() != nil {
			return fmt.Errorf("drain: %d jobs are still open: %w", open, context.Cause(ctx))
		}
	}
}

// rest takes the least of what is used while little happens, for the figures that are judged at
// rest.
func (s *soak) rest(ctx context.Context, values []float64) ([]float64, error) {
	least := make([]float64, len(figures))
	for began := time.Now(); least[orchestratorMemory] == 0 || time.Since(began) < restFor; {
		now, err := s.measure(ctx)
		if err != nil {
			return nil, err
		}
		for i := range now {
			if least[i] == 0 || now[i] < least[i] {
				least[i] = now[i]
			}
		}
		pause(ctx, look/2)
	}
	for i, f := range figures {
		if f.atRest {
			values[i] = least[i]
		}
	}
	return values, nil
}

// ends says how attempts have ended, and fails if a kind is missing.
func (s *soak) ends(ctx context.Context, long bool) (string, error) {
	found, err := s.metrics(ctx)
	if err != nil {
		return "", err
	}
	counts := []struct {
		name  string
		count float64
	}{
		{"ticks of the schedule", sum(found["holdfast_schedule_ticks_total"], "result", "fired")},
	}
	for _, outcome := range []string{"succeeded", "failed", "permanent", "timeout", "crashed"} {
		counts = append(counts, struct {
			name  string
			count float64
		}{outcome, sum(found["holdfast_attempts_total"], "outcome", outcome)})
	}
	if long {
		counts = append(counts, struct {
			name  string
			count float64
		}{"jobs deleted", sum(found["holdfast_retention_jobs_total"], "", "")})
	}
	var parts, missing []string
	for _, c := range counts {
		parts = append(parts, fmt.Sprintf("%s: %.0f", c.name, c.count))
		if c.count == 0 {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		err = fmt.Errorf("%w: no %s", errTooLittle, strings.Join(missing, ", "))
	}
	return strings.Join(parts, "; "), err
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
