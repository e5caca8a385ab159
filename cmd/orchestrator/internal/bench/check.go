package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// Check compares what a job costs in processor time, WAL and allocations with a
// baseline that is kept with the code. Rates and latencies depend mostly on the
// machine; these figures hold on most machines, and their bounds allow for the rest.
type Check struct {
	// Baseline is the file of the baseline.
	Baseline string
	// Write replaces the baseline instead of comparing with it.
	Write bool
	// Strict makes a figure beyond its bound an error.
	Strict bool
	// Summary is a file to append the report to, as Markdown; empty for none.
	Summary string
}

// ErrWorse says that figures are worse than the bounds allow.
var ErrWorse = errors.New("jobs cost more than the baseline and its bounds allow")

// Run measures the guarded scenarios and prints how they compare.
func (c Check) Run(ctx context.Context, cfg Config, out show.Screen) error {
	return c.run(func(scenario string, jobs int) (*Report, error) {
		cfg.Jobs, cfg.Runs, cfg.WarmUps = jobs, guardedRuns, guardedWarmUps
		return Run(ctx, cfg, []string{scenario})
	}, commit(ctx), out)
}

func (c Check) run(measure func(scenario string, jobs int) (*Report, error), commit string, out show.Screen) error {
	var before baseline
	if !c.Write { // before spending minutes on measuring
		var err error
		if before, err = readBaseline(c.Baseline); err != nil {
			return err
		}
	}
	now := baseline{Commit: commit, Runs: guardedRuns, Jobs: guardedJobs}
	for i, scenario := range slices.Sorted(maps.Keys(guardedJobs)) {
		report, err := measure(scenario, guardedJobs[scenario])
		if err != nil {
			return fmt.Errorf("measuring %s: %w", scenario, err)
		}
		if i == 0 {
			now.Began, now.Machine = report.Began.UTC().Truncate(time.Second), report.Machine
			now.Machine.Holdfast = "" // the commit says it
		}
		if err := now.add(scenario, report); err != nil {
			return err
		}
	}
	if c.Write {
		if err := now.writeTo(c.Baseline); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s is written: %s\n", c.Baseline, now.about())
		return err
	}
	compared, err := compare(before, now)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Baseline, err)
	}
	if err := compared.print(out); err != nil {
		return err
	}
	if c.Summary != "" {
		if err := appendTo(c.Summary, compared.markdown()); err != nil {
			return err
		}
	}
	if c.Strict && compared.has(worse) {
		return ErrWorse
	}
	return nil
}

// commit is that of the checkout, if there is one.
func commit(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Close())
}

// verdict is how a figure compares with the baseline's.
type verdict string

const (
	within  verdict = "within"
	worse   verdict = "WORSE"
	better  verdict = "better"
	unknown verdict = "not known here"
)

// row is one figure of the baseline and of now; 0 when it is not known.
type row struct {
	guard
	unit        string
	before, now float64
}

// verdict calls a figure better when the old one would be worse beside it.
func (r row) verdict() verdict {
	switch {
	case r.before == 0 || r.now == 0:
		return unknown
	case r.now > r.before*(1+r.bound):
		return worse
	case r.before > r.now*(1+r.bound):
		return better
	default:
		return within
	}
}

type comparison struct {
	before, now baseline
	rows        []row
}

// compare returns an error when the two do not have the same figures.
func compare(before, now baseline) (comparison, error) {
	c := comparison{before: before, now: now}
	if !maps.Equal(before.Jobs, now.Jobs) {
		return c, fmt.Errorf("it is of other numbers of jobs: %v, not %v; %s", before.Jobs, now.Jobs, howToWrite)
	}
	for _, g := range guards() {
		r := row{guard: g}
		was, is := before.find(g), now.find(g)
		if was == nil && !g.optional() {
			return c, fmt.Errorf("it does not have %q of %s, %s; %s", g.figure, g.scenario, g.caseName, howToWrite)
		}
		if was != nil {
			r.before, r.unit = was.Median, was.Unit
		}
		if is != nil {
			r.now, r.unit = is.Median, is.Unit
		}
		c.rows = append(c.rows, r)
	}
	return c, nil
}

func (c comparison) has(v verdict) bool {
	return slices.ContainsFunc(c.rows, func(r row) bool { return r.verdict() == v })
}

// findings describe the figures beyond their bounds, and what to do.
func (c comparison) findings() (lines []string) {
	for _, r := range c.rows {
		if v := r.verdict(); v == worse || v == better {
			lines = append(lines, r.words())
		}
	}
	if c.has(worse) {
		lines = append(lines, "Worse than the bounds allow. If there is a good reason, write a new baseline with make bench-baseline.")
	}
	if c.has(better) {
		lines = append(lines, "Better by more than the bound: update the baseline with make bench-baseline.")
	}
	if len(lines) == 0 {
		lines = append(lines, "All within the bounds.")
	}
	return lines
}

// words describe one figure: WAL a job: 1,210 bytes, 15 % above the baseline of
// 1,050 (submit, 64 clients).
func (r row) words() string {
	way := "above"
	if r.now < r.before {
		way = "below"
	}
	return fmt.Sprintf("%s a job: %s %s, %.0f %% %s the baseline of %s (%s, %s)",
		strings.Replace(r.figure, ", ", " by the ", 1), rounded(r.now), strings.TrimSuffix(r.unit, "/job"),
		100*math.Abs(r.now/r.before-1), way, rounded(r.before), r.scenario, r.caseName)
}

var columns = []string{"scenario", "case", "figure", "unit", "baseline", "now", "ratio", "bound", "verdict"}

func (r row) cells() []string {
	known := func(value float64, text string) string {
		if value == 0 {
			return "–"
		}
		return text
	}
	return []string{
		r.scenario, r.caseName, r.figure, r.unit, known(r.before, rounded(r.before)), known(r.now, rounded(r.now)),
		known(r.before*r.now, fmt.Sprintf("%.2f", r.now/r.before)), fmt.Sprintf("%.2f", 1+r.bound), string(r.verdict()),
	}
}

func (c comparison) print(out show.Screen) error {
	out.Print(fmt.Sprintf("baseline: %s\nnow:      %s\n\n", c.before.about(), c.now.about()))
	var heads []string
	for _, name := range columns {
		heads = append(heads, strings.ToUpper(name))
	}
	table := show.NewTable(out, heads...)
	for _, r := range c.rows {
		var cells []any
		for _, text := range r.cells() {
			cells = append(cells, text)
		}
		table.Row(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(c.findings(), "\n"))
	return err
}

func (c comparison) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### What a job costs\n\n- baseline: %s\n- now: %s\n\n", c.before.about(), c.now.about())
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range c.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	fmt.Fprintf(&b, "\n- %s\n", strings.Join(c.findings(), "\n- "))
	return b.String()
}
