package main

import (
	"slices"
	"time"
)

// What a driver can be told to do.
const (
	doMigrate = "migrate" // make the tables
	doFill    = "fill"    // queue jobs as fast as may be
	doInsert  = "insert"  // queue jobs as callers would
	doWork    = "work"    // work off what is queued
	doLife    = "life"    // work jobs off while callers queue them
)

// order is what a driver gets, as JSON in its last argument.
type order struct {
	Do   string `json:"do"`
	URL  string `json:"url"`
	Jobs int    `json:"jobs"`
	// Callers insert at once, Batch jobs a call.
	Callers int `json:"callers,omitempty"`
	Batch   int `json:"batch,omitempty"`
	// Single takes one job at a time, and none ahead.
	Single bool `json:"single,omitempty"`
	// Priorities is how many there are; the jobs have them in turn.
	Priorities int `json:"priorities,omitempty"`
	// Limit ends the work, done or not; 0 for never. In seconds.
	Limit float64 `json:"limit,omitempty"`
}

// report is a line that a driver writes to its standard output: first that it
// is ready, and how many jobs it took to warm up; then, after a line on its
// standard input, what it did. It stays until its standard input ends.
type report struct {
	Ready bool `json:"ready,omitempty"`
	Done  int  `json:"done"`
	// Seconds is how long it took until all that was done was settled.
	Seconds float64 `json:"seconds,omitempty"`
	// Pace is how many jobs were done in each beat.
	Pace []int `json:"pace,omitempty"`
}

// warmUpWithin is how long callers call before they are measured, so that
// connections and statements are made, unless they queue as many jobs as are
// measured before. The drivers in node/ have it too.
const warmUpWithin = time.Second

// beat is the unit of Pace; the drivers in node/ have it too.
const beat = 50 * time.Millisecond

// pace counts the jobs of each beat.
type pace struct {
	began time.Time
	beats []int
}

func (p *pace) add() {
	at := int(time.Since(p.began) / beat)
	for len(p.beats) <= at {
		p.beats = append(p.beats, 0)
	}
	p.beats[at]++
}

// tenths returns the rates of the first and the last tenth of the jobs, in
// jobs/s, from the beat in which the first was done. A beat that holds the end
// of a tenth counts by its share. They are zero where there are too few beats
// to tell.
func (r report) tenths() (first, last float64) {
	idle := max(slices.IndexFunc(r.Pace, func(n int) bool { return n > 0 }), 0)
	if len(r.Pace)-idle < 10 {
		return 0, 0
	}
	share := float64(r.Done) / 10
	first = share / (r.until(share) - float64(idle)*beat.Seconds())
	last = share / (r.until(float64(r.Done)) - r.until(float64(r.Done)-share))
	return first, last
}

// until is when so many jobs were done, in seconds.
func (r report) until(jobs float64) float64 {
	var sum float64
	for i, n := range r.Pace {
		if sum+float64(n) >= jobs && n > 0 {
			return (float64(i) + (jobs-sum)/float64(n)) * beat.Seconds()
		}
		sum += float64(n)
	}
	return float64(len(r.Pace)) * beat.Seconds()
}
