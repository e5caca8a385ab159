package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

const holdfastName = "Holdfast"

// columns of the tables, for a terminal and for the page.
var columns = []string{"system", "jobs/s", "min – max", "Holdfast is", "CPU µs/job", "programs", "PostgreSQL", "WAL bytes/job"}

// row tells of one system in a case. The ratio is how many times its rate is
// Holdfast's.
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
	return cells
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

// pace is what pinned tells beyond the rest.
func (c *Case) pace() (string, bool) {
	last, ok := ratio(c.figure(lastTenth), c.figure(firstTenth))
	if !ok {
		return "", false
	}
	return fmt.Sprintf("the first tenth at %s jobs/s, the last at %s, in the median round %.2f times the first; %s %% done in time",
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

func (r *Results) print(out io.Writer) error {
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		for _, task := range s.tasks() {
			fmt.Fprintf(out, "\n%s: %s, %s\n", s.Name, s.About, task)
			table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, strings.Join(columns, "\t"))
			for _, c := range r.of(s, task) {
				fmt.Fprintln(table, strings.Join(s.row(c), "\t"))
			}
			if err := table.Flush(); err != nil {
				return err
			}
			for _, c := range r.of(s, task) {
				if pace, ok := c.pace(); ok {
					fmt.Fprintf(out, "%s: %s\n", c.System, pace)
				}
			}
		}
	}
	for _, missing := range r.Missing {
		fmt.Fprintln(out, "\nnot measured:", missing)
	}
	return nil
}

// page renders docs/explanation/performance.md.
func (r *Results) page() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Performance, beside other job queues\n")
	say("<!-- Written by make bench-peers; do not edit. -->\n")
	say("Holdfast and other job queues on PostgreSQL, measured in the same session on the same server, in turns. `make bench-peers`")
	say("writes this page anew; `orchestrator bench` measures Holdfast alone, and more of it (docs/reference/cli.md).\n")
	say("These figures: %s, %d %s after %d to warm up, %s jobs in the largest scenario.\n\n```\n%s\n```\n",
		r.Began.Format("2 January 2006"), r.Rounds, plural(r.Rounds, "round"), r.WarmUps, grouped(r.Jobs), r.Command)
	if r.Rounds < 5 {
		say("**A trial run:** so few rounds show that the measurement works, not who is faster.\n")
	}
	say("A figure is the median of the rounds. *Holdfast is* n × means that it did n times as many jobs a second, reckoned round by")
	say("round, so that what the machine did to both falls out. *Programs* are the orchestrator and its handler processes, or the peer's")
	say("processes; a peer's include who inserts, Holdfast's do not, since its clients come over HTTP. *CPU* is that and all of")
	say("PostgreSQL, user and system. *WAL* is what PostgreSQL wrote to its log, full-page images included.")
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		say("\n## %s\n\n%s.", s.Name, capital(s.About))
		for _, task := range s.tasks() {
			say("\n%s, %s jobs:\n", capital(task), grouped(s.Jobs*timesOf(s.Name, task)))
			say("| %s |\n|---|%s", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)-1))
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
	r.how(say)
	return b.Bytes()
}

// how tells of the machine, the settings and the way it was measured.
func (r *Results) how(say func(format string, args ...any)) {
	say("\n## How it was measured\n")
	say("- Machine: %d × %s, %s.", r.Machine.CPUs, orElse(r.Machine.CPU, "CPU"), r.Machine.System)
	var settings []string
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "checkpoint_timeout"} {
		if value, ok := r.Machine.Settings[name]; ok {
			settings = append(settings, fmt.Sprintf("`%s=%s`", name, value))
		}
	}
	say("%s", wrapped(fmt.Sprintf("- PostgreSQL %s on the same machine: %s.", r.Machine.PostgreSQL, strings.Join(settings, ", "))))
	say("- Every system has a database of its own in every run. Each phase begins after `VACUUM ANALYZE` and `CHECKPOINT`. Each round")
	say("  begins with another system.")
	say("- After every run the jobs are counted: each was done, by one attempt.")
	say("- Handlers do nothing. Holdfast's run in a process of their own; those of the others in the process that works the queue.")
	say("- The 64 callers of a peer share %d connections: with 8 and with 64, River was slower. They call for a second before they are", mostConnections)
	say("  measured, and so do Holdfast's clients.")
	say("- Payloads are empty. Clients, systems and PostgreSQL share the machine.")
	say("\n## The systems\n")
	for _, system := range r.Systems {
		if system.Name == holdfastName {
			say("- **Holdfast** %s, %s. Its defaults, by `orchestrator bench`. One at a time: `worker.concurrency=1`,", r.Machine.Holdfast, r.Machine.Go)
			say("  `plugins.0.concurrency=1`, `worker.prefetch=0s`. Inserts by HTTP: `POST /jobs`, or `POST /jobs/batch` with 500 jobs a batch.")
			say("  Done jobs keep their rows.")
			continue
		}
		say("%s", wrapped(fmt.Sprintf("- **%s** %s. %s", system.Name, system.Version, system.Settings)))
	}
	for _, missing := range r.Missing {
		say("- Not measured: %s.", missing)
	}
}

// timesOf is how many times the jobs of the scenario a task has.
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

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func plural(n int, thing string) string {
	if n == 1 {
		return thing
	}
	return thing + "s"
}

// wrapped breaks an item of a list into lines of a good length.
func wrapped(item string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(item) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+width > 120:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// rounded shows three digits that mean something, and all before the point.
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
