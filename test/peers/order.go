package main

import (
	"slices"
	"time"
)

// The actions of a driver.
const (
	doMigrate = "migrate" // create the tables
	doFill    = "fill"    // insert jobs as fast as possible
	doInsert  = "insert"  // insert jobs with many callers
	doWork    = "work"    // run the jobs that are queued
	doLife    = "life"    // run jobs while callers insert them
)

// order is the instruction to a driver, as JSON in its last argument.
type order struct {
	Do   string `json:"do"`
	URL  string `json:"url"`
	Jobs int    `json:"jobs"`
	// Callers insert at the same time, Batch jobs a call.
	Callers int `json:"callers,omitempty"`
	Batch   int `json:"batch,omitempty"`
	// Single runs one job at a time, without prefetching.
	Single bool `json:"single,omitempty"`
	// Kept brings the system as near to Holdfast's guarantees as it can be configured.
	Kept bool `json:"kept,omitempty"`
	// Set are the driver's settings.
	Set settings `json:"set"`
	// Priorities is how many different priorities the jobs have, in turn.
	Priorities int `json:"priorities,omitempty"`
	// Limit ends the work after so many seconds, finished or not; 0 means never.
	Limit float64 `json:"limit,omitempty"`
}

// report is a line that a driver writes to its standard output. The first report says
// that the driver is ready, and how many jobs it took to warm up. After a line on
// standard input, the driver acts and writes the second report, which says what it
// did. The driver ends when its standard input is closed.
type report struct {
	Ready bool `json:"ready,omitempty"`
	Done  int  `json:"done"`
	// Seconds is how long it took until the last of them was settled.
	Seconds float64 `json:"seconds,omitempty"`
	// Pace is how many jobs were done in each beat.
	Pace []int `json:"pace,omitempty"`
}

// warmUpWithin is how long callers insert jobs before the measurement, so that
// connections and statements are prepared. They stop earlier if they have inserted as
// many jobs as are measured. The drivers in node/ repeat this constant.
const warmUpWithin = time.Second

// beat is the unit of Pace. The drivers in node/ repeat this constant.
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

// tenths returns the rates of the first and the last tenth of the jobs, in jobs/s. Time
// begins with the beat in which the first job was done, and a beat in which a tenth
// ends counts in part. Both rates are zero if there are too few beats.
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

// until returns the time after which so many jobs were done, in seconds.
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
