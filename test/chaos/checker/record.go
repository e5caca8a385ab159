package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// slack is how far the clocks of clients, handlers and the database may differ, which are
// all that of one machine.
const slack = history.Nanos(50 * time.Millisecond)

// record is a run, as it was recorded.
type record struct {
	run       history.Run
	calls     []history.Call
	faults    []history.Fault
	effects   []effect
	witness   []history.Change
	final     []history.FinalRow
	processes []history.Process
	leaks     history.Leaks
	timings   history.Timings

	stories
}

// effect is a line of a handler, and where it is.
type effect struct {
	history.Effect
	at string
	// by is the orchestrator of the handler.
	by string
}

// Lines are numbered from 1.
func callLine(index int) string    { return fmt.Sprintf("%s:%d", history.CallsFile, index+1) }
func faultLine(index int) string   { return fmt.Sprintf("%s:%d", history.FaultsFile, index+1) }
func witnessLine(index int) string { return fmt.Sprintf("%s:%d", history.WitnessFile, index+1) }
func finalLine(index int) string   { return fmt.Sprintf("%s:%d", history.FinalFile, index+1) }
func processLine(index int) string { return fmt.Sprintf("%s:%d", history.ProcessesFile, index+1) }

func load(dir string) (*record, error) {
	r := &record{}
	file := func(name string) string { return filepath.Join(dir, name) }
	steps := []func() error{
		func() (err error) { r.run, err = history.Read[history.Run](file(history.RunFile)); return err },
		func() (err error) { r.leaks, err = history.Read[history.Leaks](file(history.LeaksFile)); return err },
		func() (err error) {
			r.timings, err = history.Read[history.Timings](file(history.TimingsFile))
			return err
		},
		func() error { return lines(file(history.CallsFile), &r.calls) },
		func() error { return lines(file(history.FaultsFile), &r.faults) },
		func() error { return lines(file(history.WitnessFile), &r.witness) },
		func() error { return lines(file(history.FinalFile), &r.final) },
		func() error { return lines(file(history.ProcessesFile), &r.processes) },
		func() error {
			return history.EachEffect(file(history.EffectsDir), func(name string, number int, line history.Effect) error {
				by, _, _ := strings.Cut(name, "-")
				r.effects = append(r.effects, effect{line, fmt.Sprintf("%s/%s:%d", history.EffectsDir, name, number), by})
				return nil
			})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func lines[T any](path string, into *[]T) error {
	return history.EachLine(path, func(_ int, line T) error {
		*into = append(*into, line)
		return nil
	})
}

// forgetful reports whether what was acknowledged at that time may be lost: commits did not
// wait for the standby, and another server took over later.
func (r *record) forgetful(acknowledged history.Nanos) bool {
	return !r.run.Synchronous && slices.ContainsFunc(r.faults, func(fault history.Fault) bool {
		return fault.Error == "" && fault.Failover && fault.Healed >= acknowledged
	})
}

// ledger yields the rows of the ledger at the end, and where they are.
func (r *record) ledger(each func(line string, row history.Row)) {
	for i, row := range r.final {
		if row.Table == "jobs" {
			each(finalLine(i), row.Row)
		}
	}
}

// stated translates a state into the status that clients see.
func stated(state string) string {
	switch state {
	case "running":
		return "RUNNING"
	case "succeeded":
		return "COMPLETED"
	case "dead":
		return "FAILED"
	case "canceled":
		return "CANCELED"
	}
	return "PENDING"
}

func ended(state string) bool { return strings.Contains(" succeeded dead canceled ", " "+state+" ") }
