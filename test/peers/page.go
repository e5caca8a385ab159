package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

const holdfastName = "Holdfast"

// paper is about systems that are not measured.
//
//go:embed paper.md
var paper string

// columns are the columns of the tables.
var columns = []string{"system", "jobs/s", "min – max", "Holdfast is", "CPU µs/job", "programs", "PostgreSQL", "WAL bytes/job", "best settings"}

// row is the line of one system in a table. Its ratio is Holdfast's rate divided by
// the system's.
func (s *Scenario) row(c *Case) []string {
	ours := s.find(c.Name, holdfastName)
	times := "–"
	if ours != nil && c.System != holdfastName {
		if r, ok := ratio(ours.figure(rate), c.figure(rate)); ok {
			times = fmt.Sprintf("%.2f ×", r)
		}
	}
	cells := []string{c.System, c.told(rate), c.span(rate), times}
	for _, name := range []string{cpu, cpuPrograms, cpuPostgres, wal} {
		cells = append(cells, c.told(name))
	}
	return append(cells, cmp.Or(c.Settings.String(), "–"))
}

func (c *Case) told(name string) string {
	if f := c.figure(name); f != nil {
		return rounded(median(f.Values))
	}
	return "–"
}

func (c *Case) span(name string) string {
	f := c.figure(name)
	if f == nil {
		return "–"
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, value := range f.Values {
		low, high = min(low, value), max(high, value)
	}
	return rounded(low) + " – " + rounded(high)
}

// pace describes how the rate changed, which only the scenario pinned measures.
func (c *Case) pace() (string, bool) {
	last, ok := ratio(c.figure(lastTenth), c.figure(firstTenth))
	if !ok {
		return "", false
	}
	return fmt.Sprintf("first tenth %s jobs/s, last tenth %s jobs/s, in the median round %.2f times the first; %s %% done in time",
		c.told(firstTenth), c.told(lastTenth), last, c.told(doneShare)), true
}

// tasks are the names of the cases, in order.
func (s *Scenario) tasks() (names []string) {
	for _, c := range s.Cases {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// of returns the cases of a task, in the order of the systems.
func (r *Results) of(s *Scenario, task string) (cases []*Case) {
	for _, system := range r.Systems {
		if c := s.find(task, system.Name); c != nil {
			cases = append(cases, c)
		}
	}
	return cases
}

// page renders docs/explanation/performance.md.
func (r *Results) page() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Performance compared with other job queues\n")
	say("<!-- Written by make bench-peers; do not edit. -->\n")
	say("This page compares Holdfast with other job queues on PostgreSQL. They took turns in the same session on the same server.")
	say("`make bench-peers` writes this page. `orchestrator bench` measures more of Holdfast alone ([cli.md](../reference/cli.md#orchestrator-bench)).\n")
	say("Date: %s, in %s. Measured rounds: %d, after %d to warm up. Jobs in the largest scenario: %s.",
		r.Began.Format("2 January 2006"), r.Ended.Sub(r.Began).Round(time.Minute), r.Rounds, r.WarmUps, grouped(r.Jobs))
	say("Processors: %d × %s; their clock: %s at the beginning, %s at the end, as `/proc/cpuinfo` has it, which on a virtual machine may be",
		r.Machine.CPUs, cmp.Or(r.Machine.CPU, "unknown"), tellClocks(r.Clocks[0]), tellClocks(r.Clocks[1]))
	say("the nominal one. Command:\n\n```\n%s\n```\n", r.Command)
	if r.Rounds < r.Planned {
		say("**There was no time** for more of the %d rounds.\n", r.Planned)
	}
	if r.Rounds < 5 {
		say("**A trial run:** so few rounds show that the measurement works, not which system is faster.\n")
	}
	say("Each figure is the median of the rounds. *Holdfast is* n × means that Holdfast did n times as many jobs a second. This ratio is taken")
	say("in each round, so that it does not depend on how fast the machine was in that round. *Programs* are the orchestrator and its plugin")
	say("processes, or the peer's processes. A peer's processes also insert the jobs; Holdfast's do not, because its clients use HTTP. *CPU* is the")
	say("user and system time of the programs and of all of PostgreSQL. *WAL* is what PostgreSQL wrote to its log, including full-page images.")
	if len(r.Sweeps) > 0 {
		say("*Best settings* are those that were fastest in a [sweep](#the-sweeps) just before; cooldowns, intervals and delays are in milliseconds.")
		say("Every other setting is in [the systems](#the-systems).")
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		say("\n## %s\n\n%s.", s.Name, capital(s.About))
		if s.Name == "kept" {
			r.guarantees(say)
		}
		for _, task := range s.tasks() {
			say("\n%s, %s jobs:\n", capital(task), grouped(s.Jobs*timesOf(s.Name, task)))
			say("| %s |\n|---|%s---|", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)-2))
			for _, c := range r.of(s, task) {
				say("| %s |", strings.Join(s.row(c), " | "))
			}
			separator := "\n"
			for _, c := range r.of(s, task) {
				if pace, ok := c.pace(); ok {
					say("%s- %s: %s.", separator, c.System, pace)
					separator = ""
				}
			}
		}
	}
	r.swept(say)
	r.how(say)
	b.WriteString(paper)
	return b.Bytes()
}

// swept shows what the sweeps have tried.
func (r *Results) swept(say func(format string, args ...any)) {
	if len(r.Sweeps) == 0 {
		return
	}
	say("\n## The sweeps\n")
	say("Before the rounds, each system tried these settings in turns, on half of the jobs. The one with the highest median, in bold, was measured")
	say("above. Batch sizes and numbers of connections are the same for all. Holdfast sweeps only the size of its clients' batches:")
	say("the orchestrator keeps its defaults.")
	for i := range r.Sweeps {
		s := &r.Sweeps[i]
		say("\n**%s**: %s, %s. %s jobs:\n", capital(s.Name), s.Scenario, s.Task, grouped(s.Jobs*timesOf(s.Scenario, s.Task)))
		say("| system | settings | jobs/s |\n|---|---|---:|")
		for _, try := range s.Tries {
			told := rounded(median(try.Rates))
			if try.Best {
				told = "**" + told + "**"
			}
			say("| %s | %s | %s |", try.System, try.Settings, told)
		}
	}
}

// how describes the machine, the settings and the method.
func (r *Results) how(say func(format string, args ...any)) {
	say("\n## How it was measured\n")
	say("- Machine: %d × %s, %s.", r.Machine.CPUs, cmp.Or(r.Machine.CPU, "CPU"), r.Machine.System)
	var settings []string
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "checkpoint_timeout"} {
		if value, ok := r.Machine.Settings[name]; ok {
			settings = append(settings, fmt.Sprintf("`%s=%s`", name, value))
		}
	}
	say("- PostgreSQL %s on the same machine: %s.", r.Machine.PostgreSQL, strings.Join(settings, ", "))
	say("- Every system gets a new database in every run. Each phase begins after `VACUUM ANALYZE` and `CHECKPOINT`. Each round begins with")
	say("  another system.")
	say("- After every run, the jobs are counted: each must have been done by one attempt.")
	say("- Handlers do nothing. Holdfast runs them in a process of their own, the others in the process that works on the queue.")
	say("- The 64 callers of a peer share connections, 32 unless a sweep found better. They call for a second before the measurement starts, and so")
	say("  do Holdfast's clients.")
	say("- Payloads are empty. Clients, systems and PostgreSQL share the machine.")
	say("\n## The systems\n")
	for _, system := range r.Systems {
		if system.Name == holdfastName {
			say("- **Holdfast** %s, %s. Its defaults, measured by `orchestrator bench`. One at a time: `worker.concurrency=1`,", r.Machine.Holdfast, r.Machine.Go)
			say("  `plugins.0.concurrency=1`, `worker.prefetch=0s`. Inserts over HTTP: `POST /jobs`, or `POST /jobs/batch` with 500 jobs a batch, unless a sweep found better.")
			say("  Finished jobs keep their rows.")
			continue
		}
		say("- **%s** %s. %s", system.Name, system.Version, system.Settings)
	}
	for _, missing := range r.Missing {
		say("- Not measured: %s.", missing)
	}
}

// timesOf returns the number of a task's jobs, as a multiple of the scenario's.
func timesOf(scenarioName, taskName string) int {
	for _, s := range scenarios {
		for _, t := range s.cases {
			if s.name == scenarioName && t.name == taskName {
				return t.times
			}
		}
	}
	return 1
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// rounded shows three significant digits, and all digits before the point.
func rounded(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	if digits <= 0 {
		return grouped(int(math.Round(value)))
	}
	return strconv.FormatFloat(value, 'f', min(digits, 3), 64)
}

// grouped writes a count with commas between the thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
