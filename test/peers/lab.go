package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/store/embedded"
)

// lab measures the systems.
type lab struct {
	config
	cluster *cluster
	systems []system
	// chosen are the winners of the sweeps, by system.
	chosen  map[string]choices
	results *Results
	notes   io.Writer
}

func measure(ctx context.Context, cfg config, notes io.Writer) (*Results, error) {
	l := &lab{config: cfg, notes: notes, chosen: map[string]choices{}}
	l.results = &Results{Began: time.Now(), Planned: cfg.rounds, WarmUps: cfg.warmUps, Jobs: cfg.jobs}
	l.results.Clocks[0] = clocks()
	if err := l.gather(ctx); err != nil {
		return nil, err
	}
	url := cfg.database
	if url == "" {
		server, err := embedded.Start(ctx, embedded.Config{DataDir: cfg.dataDir})
		if err != nil {
			return nil, err
		}
		defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }()
		url = server.URL()
	}
	var err error
	if l.cluster, err = openCluster(ctx, url); err != nil {
		return nil, err
	}
	chosen := cfg.chosen()
	for _, s := range chosen {
		l.results.Scenarios = append(l.results.Scenarios, Scenario{Name: s.name, About: s.about, Jobs: s.jobsOf(cfg.jobs)})
	}
	if err := l.sweep(ctx, chosen); err != nil {
		return nil, err
	}
	if err := l.allRounds(ctx, chosen); err != nil {
		return nil, err
	}
	l.results.Ended, l.results.Clocks[1] = time.Now(), clocks()
	return l.results, nil
}

// allRounds measures all rounds, or as many as the time allows, but one at least.
func (l *lab) allRounds(ctx context.Context, chosen []scenario) error {
	var longest time.Duration
	for round := -l.warmUps; round < l.rounds; round++ {
		began := time.Now()
		if round > 0 && began.Add(longest).Sub(l.results.Began) > l.within {
			fmt.Fprintf(l.notes, "no time for more than %d of %d rounds in %s\n", round, l.rounds, l.within)
			break
		}
		for i, s := range chosen {
			if err := l.round(ctx, round, s, &l.results.Scenarios[i]); err != nil {
				return err
			}
		}
		longest = max(longest, time.Since(began))
		l.results.Rounds = round + 1
	}
	return nil
}

// gather finds the systems that this machine can measure.
func (l *lab) gather(ctx context.Context) error {
	l.add(holdfast{program: l.orchestrator}, System{Name: holdfastName, Guarantees: holdfastGuarantees})
	program, err := os.Executable()
	if err != nil {
		return err
	}
	peers := []peer{riverPeer(program)}
	if !slices.Contains(l.without, "node") {
		more, err := nodePeers(ctx, l.nodeDir)
		switch {
		case errors.Is(err, errNoNode):
			l.results.Missing = append(l.results.Missing, "Graphile Worker and pg-boss: "+err.Error())
			fmt.Fprintln(l.notes, "continuing without Graphile Worker and pg-boss:", err)
		case err != nil:
			return err
		}
		peers = append(peers, more...)
	}
	for _, p := range peers {
		if !slices.Contains(l.without, p.name) {
			l.add(p, System{Name: p.name, Version: p.version, Settings: p.settings, Guarantees: p.guarantees})
		}
	}
	return nil
}

func (l *lab) add(s system, told System) {
	l.systems = append(l.systems, s)
	l.chosen[s.title()] = choices{}
	l.results.Systems = append(l.results.Systems, told)
}

// round measures every system once. Each round begins with another system, so that
// no system always follows the same one.
func (l *lab) round(ctx context.Context, round int, s scenario, into *Scenario) error {
	for i := range l.systems {
		subject := l.systems[(i+round+l.warmUps)%len(l.systems)]
		began := time.Now()
		readings, err := subject.measure(ctx, l, s, into.Jobs, l.chosen[subject.title()])
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.name, subject.title(), causeOf(ctx, err))
		}
		title := fmt.Sprintf("round %d of %d", round+1, l.rounds)
		if round < 0 {
			title = "warming up"
		}
		for _, r := range readings {
			if r.figure == rate {
				fmt.Fprintf(l.notes, "%-13s %-8s %-16s %-28s %12s jobs/s  (%.0f s)\n",
					title, s.name, subject.title(), r.task, rounded(r.value), time.Since(began).Seconds())
			}
			if round >= 0 {
				into.add(subject.title(), r)
			}
		}
		for _, t := range s.cases {
			if c := into.find(t.name, subject.title()); c != nil {
				c.Settings = l.chosen[subject.title()].of(t)
			}
		}
	}
	return nil
}
