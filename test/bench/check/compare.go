package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

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

func (c comparison) print(out io.Writer) error {
	fmt.Fprintf(out, "baseline: %s\nnow:      %s\n\n", c.before.about(), c.now.about())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(columns, "\t")))
	for _, r := range c.rows {
		fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
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

// rounded formats a value with three significant digits, or all digits before the
// point if those are more.
func rounded(value float64) string {
	digits := 2 - int(math.Floor(math.Log10(value)))
	return message.NewPrinter(language.English).Sprintf("%.*f", max(digits, 0), value)
}
