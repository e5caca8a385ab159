package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// verdict is what a figure is beside the baseline's.
type verdict string

const (
	within  verdict = "within"
	worse   verdict = "WORSE"
	better  verdict = "better"
	unknown verdict = "not known here"
)

// row is one figure of both. One that is not known is 0.
type row struct {
	guard
	unit        string
	before, now float64
}

func (r row) ratio() float64 { return r.now / r.before }

// verdict takes a figure for better when the old one would be worse beside it.
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

// comparison is a measurement beside the baseline.
type comparison struct {
	before, now measurement
	rows        []row
}

// compare returns an error when the two are not of the same things.
func compare(before, now measurement) (comparison, error) {
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

// findings say in words what is not within the bounds, and what to do.
func (c comparison) findings() (lines []string) {
	for _, r := range c.rows {
		if v := r.verdict(); v == worse || v == better {
			lines = append(lines, r.words())
		}
	}
	if c.has(worse) {
		lines = append(lines, "Worse than the bounds allow. Where that has a good reason, make bench-baseline writes a new baseline.")
	}
	if c.has(better) {
		lines = append(lines, "Better, by more than what would be too much the other way: update the baseline with make bench-baseline.")
	}
	if len(lines) == 0 {
		lines = append(lines, "All within the bounds.")
	}
	return lines
}

// words tell of one figure: WAL a job: 1,210 bytes, 15 % above the baseline of
// 1,050 (submit, 64 clients).
func (r row) words() string {
	way := "above"
	if r.now < r.before {
		way = "below"
	}
	return fmt.Sprintf("%s a job: %s %s, %.0f %% %s the baseline of %s (%s, %s)",
		strings.Replace(r.figure, ", ", " by the ", 1), rounded(r.now), strings.TrimSuffix(r.unit, "/job"),
		100*math.Abs(r.ratio()-1), way, rounded(r.before), r.scenario, r.caseName)
}
