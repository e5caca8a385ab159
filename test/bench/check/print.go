package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

var columns = []string{"scenario", "case", "figure", "unit", "baseline", "now", "ratio", "bound", "verdict"}

func (r row) cells() []string {
	ratio := "–"
	if r.verdict() != unknown {
		ratio = fmt.Sprintf("%.2f", r.ratio())
	}
	return []string{
		r.scenario, r.caseName, r.figure, r.unit, rounded(r.before), rounded(r.now), ratio,
		fmt.Sprintf("%.2f", 1+r.bound), string(r.verdict()),
	}
}

// print shows the comparison on a terminal or in a log.
func (c comparison) print(out io.Writer) error {
	fmt.Fprintf(out, "baseline: %s\nnow:      %s\n\n", c.before.about(), c.now.about())
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
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

// markdown is the same for a page.
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

// rounded shows three digits that mean something, and all before the point,
// in groups; – for what is not known.
func rounded(value float64) string {
	switch {
	case value == 0:
		return "–"
	case value < 999.5:
		digits := 2 - int(math.Floor(math.Log10(value)))
		return strconv.FormatFloat(value, 'f', min(max(digits, 0), 2), 64)
	}
	text := strconv.FormatFloat(value, 'f', 0, 64)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
