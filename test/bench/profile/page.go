package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// least is what a part or statement must cost to get a line of its own, in microseconds or
// objects per job.
const least = 0.01

// page renders docs/explanation/costs.md.
func (c costs) page() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Where the time of a job goes\n")
	say("<!-- Written by make bench-profile; do not edit. -->\n")
	say("This page shows what a job that does nothing costs, by part of the code and by statement, while a backlog is worked off with the default")
	say("settings. `make bench-profile` writes it. [performance.md](performance.md) compares the whole with other job queues.\n")
	m := c.report.Machine
	say("%s, on %d × %s, %s, %s, PostgreSQL %s. %d runs of %d jobs, after one to warm up. The profiles themselves cost some percent.\n",
		c.report.Began.Format("2 January 2006"), m.CPUs, m.CPU, m.System, m.Go, m.PostgreSQL, c.runs, c.jobs)
	say("| per job | CPU µs | allocations | bytes |\n|---|---:|---:|---:|")
	for _, of := range []string{"orchestrator", "handlers"} {
		say("| %s | %.1f | %.1f | %.0f |", of, c.report.figure("  "+of), c.report.figure("allocations, "+of), c.report.figure("allocated, "+of))
	}
	say("| PostgreSQL | %.1f | | |", c.report.figure("  PostgreSQL"))
	say("\nAbove is what the kernel and Go's memory statistics count, the median of the runs. Below is what the profiles have sampled, which")
	say("misses some. A sample belongs to the first part in `test/bench/profile/parts.go` that has a function on its stack.")
	for _, of := range []string{"orchestrator", "handlers"} {
		say("\n## %s\n\n| part | CPU µs | allocations | bytes |\n|---|---:|---:|---:|", map[string]string{"orchestrator": "Orchestrator", "handlers": "Handlers"}[of])
		found := c.processes[of]
		sorted := slices.SortedFunc(slices.Values(found), func(a, b part) int {
			return cmp.Or(cmp.Compare(b.microseconds, a.microseconds), cmp.Compare(a.name, b.name))
		})
		for _, p := range append(sorted, found.total()) {
			if p.microseconds >= least || p.objects >= least {
				say("| %s | %.2f | %.2f | %.0f |", p.name, p.microseconds, p.objects, p.bytes)
			}
		}
	}
	say("\n## PostgreSQL\n")
	say("What `pg_stat_statements` has of the orchestrator's statements, by their files in `store/sql`. The time is what each took until it was done,")
	say("other processes included that ran meanwhile, and without the commit.\n")
	say("| statement | calls | rows a call | µs per job |\n|---|---:|---:|---:|")
	for _, s := range c.statements {
		if s.microseconds >= least {
			say("| `%s` | %d | %.1f | %.2f |", s.name, s.calls, s.rows, s.microseconds)
		}
	}
	return b.Bytes()
}
