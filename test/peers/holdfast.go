package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// holdfast is measured by running its own program, as a user would.
type holdfast struct {
	// program is the orchestrator.
	program string
}

// benchReport is the output of orchestrator bench --json.
type benchReport struct {
	Machine   Machine    `json:"machine"`
	Scenarios []Scenario `json:"scenarios"`
}

func (h holdfast) title() string { return holdfastName }

// candidates are batch sizes only: the orchestrator keeps its default settings.
func (h holdfast) candidates(sweep string) []settings { return inserting()[sweep] }

func (h holdfast) measure(ctx context.Context, l *lab, s scenario, jobs int, chosen choices) ([]reading, error) {
	arguments := []string{
		"bench", s.holdfast, "--database", l.cluster.url.String(), "--json",
		"--runs", "1", "--warm-ups", "0", "--jobs", strconv.Itoa(jobs),
	}
	for _, setting := range s.settings {
		arguments = append(arguments, "--set", setting)
	}
	for _, t := range s.cases {
		if size, ok := chosen.of(t)[batchSetting]; ok {
			arguments = append(arguments, "--batch", strconv.Itoa(size))
		}
	}
	ctx, cancel := bounded(ctx, "bench "+s.holdfast)
	defer cancel()
	command := exec.CommandContext(ctx, h.program, arguments...)
	// SIGTERM lets it stop its orchestrator and drop its database.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOLDFAST_") })
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, errors.String())
	}
	var told benchReport
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	l.results.Machine = told.Machine
	return told.readings(s)
}

// readings picks the figures that are also measured for the peers.
func (r benchReport) readings(s scenario) (readings []reading, err error) {
	for _, t := range s.cases {
		found := map[string]float64{}
		for _, told := range r.Scenarios {
			for _, c := range told.Cases {
				if !strings.HasPrefix(c.Name, t.holdfast) {
					continue
				}
				for _, f := range c.Figures {
					found[f.Name] = f.Median
				}
			}
		}
		if _, ok := found[rate]; !ok {
			return nil, fmt.Errorf("orchestrator bench %s reports no %s of %q", s.holdfast, rate, t.holdfast)
		}
		if handlers, ok := found["  handlers"]; ok {
			found[cpuPrograms] = found["  orchestrator"] + handlers
		}
		if s.pinned {
			found[doneShare] = 100
		}
		for _, f := range []struct{ name, unit string }{
			{rate, "jobs/s"},
			{cpu, "µs/job"},
			{cpuPrograms, "µs/job"},
			{cpuPostgres, "µs/job"},
			{wal, "bytes/job"},
			{firstTenth, "jobs/s"},
			{lastTenth, "jobs/s"},
			{doneShare, "%"},
		} {
			if value, ok := found[f.name]; ok {
				readings = append(readings, reading{t.name, f.name, f.unit, value})
			}
		}
	}
	return readings, nil
}
