package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// violation is one way in which a run breaks an invariant.
type violation struct {
	// Job is the job's id; empty if it is not about one job.
	Job  string `json:"job,omitempty"`
	Says string `json:"says"`
	// Evidence are the lines of the record that show it, such as witness.jsonl:17.
	Evidence []string `json:"evidence,omitempty"`
}

// verdict is what the checker found about one invariant.
type verdict struct {
	Name string `json:"name"`
	Says string `json:"says"`
	// Looked is how many things were judged, Count how many violations there are. All of
	// them are in the JSON; a table shows the first of each invariant.
	Looked     int         `json:"looked"`
	Count      int         `json:"count"`
	Violations []violation `json:"violations,omitempty"`
}

// shown is how many violations of an invariant a table shows.
const shown = 20

// findings gathers what the check of one invariant finds.
type findings struct {
	looked     int
	violations []violation
}

// look counts something that is judged.
func (f *findings) look() { f.looked++ }

func (f *findings) add(job string, evidence []string, says string, values ...any) {
	f.violations = append(f.violations, violation{Job: job, Says: fmt.Sprintf(says, values...), Evidence: evidence})
}

// invariants are checked in this order.
var invariants = []struct {
	name, says string
	check      func(*record, *findings)
}{
	{"enough", "the run did what it had to do at least", enough},
	{"V1", "none lost: every acknowledged job is there, and ended", noneLost},
	{"V2", "no phantom: every job was submitted", noPhantom},
	{"V3", "idempotent: one job for a key", oneJobPerKey},
	{"V4", "legal: every transition is in the table, the lists agree with the ledger, and the last change is the row", legal},
	{"V5", "final: only a requeue leads on from an end", final},
	{"V6", "one holder: leases are disjoint and never issued twice, and no two handlers overlap", oneHolder},
	{"V7", "no stale write: only the holder of the lease ends an attempt", noStaleWrite},
	{"V8", "at least once: what succeeded was done, under that lease", atLeastOnce},
	{"V9", "retry rules: attempts are counted and limited, none is early, and none dies too soon", retryRules},
	{"V10", "linearizable: the answers about a job or a key have an order in which all are right", linearizable},
	{"V11", "isolation: no orchestrator ended by itself", isolation},
	{"V12", "no leaks: nothing is left behind", noLeaks},
	{"V13", "liveness: what was lost is reclaimed in time, and the backlog drains", liveness},
}

func judge(r *record) []verdict {
	verdicts := make([]verdict, len(invariants))
	for i, invariant := range invariants {
		var found findings
		invariant.check(r, &found)
		verdicts[i] = verdict{
			Name: invariant.name, Says: invariant.says, Looked: found.looked, Count: len(found.violations),
			Violations: found.violations,
		}
	}
	return verdicts
}

// summarize prints what the run did, and whether all invariants hold, in one line.
func summarize(out io.Writer, r *record, verdicts []verdict) error {
	result := "all hold"
	if names := violatedBy(verdicts); len(names) > 0 {
		result = "VIOLATED: " + strings.Join(names, ", ")
	}
	did, lag := r.did(), r.timings.Lag
	at := ""
	if r.run.Commit != "" {
		at = " at " + r.run.Commit
	}
	_, err := fmt.Fprintf(out, "seed %d%s: %s; %d jobs, %d faults of %d kinds, %d failovers, %d stale attempts, %d calls without an answer; drained in %s; ticks were late by %s (p99), %s (most)\n",
		r.run.Seed, at, result, did.jobs, did.faults, did.kinds, did.failovers, did.stale, did.unknown,
		r.timings.Drained.Round(time.Millisecond), lag.P99, lag.Most.Round(time.Millisecond))
	return err
}

// violatedBy names the invariants that do not hold.
func violatedBy(verdicts []verdict) []string {
	var names []string
	for _, v := range verdicts {
		if v.Count > 0 {
			names = append(names, v.Name)
		}
	}
	return names
}

// show prints a table of the verdicts, and the violations below it.
func show(out io.Writer, verdicts []verdict) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, v := range verdicts {
		result := "holds"
		if v.Count > 0 {
			result = fmt.Sprintf("VIOLATED %d times", v.Count)
		}
		fmt.Fprintf(table, "%s\t%s\t%d looked at\t%s\n", v.Name, result, v.Looked, v.Says)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, v := range verdicts {
		few := v.Violations[:min(shown, v.Count)]
		for _, one := range few {
			about := one.Says
			if one.Job != "" {
				about = "job " + one.Job + ": " + about
			}
			fmt.Fprintf(out, "%s: %s  [%s]\n", v.Name, about, strings.Join(one.Evidence, " "))
		}
		if more := v.Count - len(few); more > 0 {
			fmt.Fprintf(out, "%s: and %d more\n", v.Name, more)
		}
	}
	return nil
}
