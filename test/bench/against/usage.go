package main

import (
	"math"
	"slices"
	"time"
)

// usage is what jobs cost.
type usage struct {
	jobs int
	// handled is the CPU time of the orchestrator and its handlers, and stored that of PostgreSQL.
	handled, stored time.Duration
	// wal is in bytes.
	wal int64
}

func (u usage) orchestrator() float64 { return microseconds(u.handled) / float64(u.jobs) }
func (u usage) postgres() float64     { return microseconds(u.stored) / float64(u.jobs) }
func (u usage) perJob() float64       { return u.orchestrator() + u.postgres() }
func (u usage) walPerJob() float64    { return float64(u.wal) / float64(u.jobs) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// spread is the median of figures, and the interval that has the median of all figures of that
// kind with a probability of 95 %.
type spread struct{ median, low, high float64 }

// summarize adds the turns of a build, and compares the CPU time of a job with that of the other
// build in the same round.
func summarize(turns, others []usage) (total usage, ratios spread) {
	var each []float64
	for i, u := range turns {
		total.jobs += u.jobs
		total.handled += u.handled
		total.stored += u.stored
		total.wal += u.wal
		each = append(each, u.perJob()/others[i].perJob())
	}
	return total, spreadOf(each)
}

// spreadOf needs at least one figure. The interval is between two of the sorted figures: how
// many are below the median is binomially distributed, here approximated by the normal
// distribution (Conover, Practical Nonparametric Statistics, 3.2).
func spreadOf(figures []float64) spread {
	slices.Sort(figures)
	n := len(figures)
	half := 1.96 * math.Sqrt(float64(n)) / 2
	at := func(rank float64) float64 { return figures[min(max(int(rank), 0), n-1)] }
	return spread{
		median: (figures[(n-1)/2] + figures[n/2]) / 2,
		low:    at(float64(n)/2 - half - 1),
		high:   at(float64(n)/2 + half),
	}
}
