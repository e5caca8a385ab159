package trial

import (
	"maps"
	"slices"
	"time"
)

const (
	// kept is how many durations of a version are kept for each job type.
	kept = 64
	// leastKept is how many durations are needed to know what is usual.
	leastKept = 5
	// leastDelay is the smallest delay of an attempt that matters.
	leastDelay = 5 * time.Millisecond
	// leastSlower is how much the shares of slow attempts must differ. If a version
	// always takes longer, most of its attempts are slow.
	leastSlower = 0.5
	// leastSlow is how many slow attempts there must be, since one may be an unusual
	// job.
	leastSlow = 2
)

// Durations keeps how long the latest successful attempts of each job type took. The zero
// value is empty.
type Durations struct{ of map[string]*latest }

type latest struct {
	took   [kept]time.Duration
	n      int // how many were added
	before int // how many of them were added before the trial
}

// last returns at most n of the latest durations, sorted.
func (l *latest) last(n int) []time.Duration {
	var sorted []time.Duration
	for i := range min(n, l.n, kept) {
		sorted = append(sorted, l.took[(l.n-1-i)%kept])
	}
	slices.Sort(sorted)
	return sorted
}

// Add records an attempt.
func (d *Durations) Add(jobType string, took time.Duration) {
	if d.of == nil {
		d.of = make(map[string]*latest)
	}
	l := d.of[jobType]
	if l == nil {
		l = new(latest)
		d.of[jobType] = l
	}
	l.took[l.n%kept] = took
	l.n++
}

// BeginTrial makes attempts count as those of the trial from now on.
func (d *Durations) BeginTrial() {
	for _, l := range d.of {
		l.before = l.n
	}
}

func (d *Durations) sorted(jobType string) []time.Duration {
	if l := d.of[jobType]; l != nil {
		return l.last(kept)
	}
	return nil
}

// ofTrial are the durations since the trial began, sorted.
func (d *Durations) ofTrial(jobType string) []time.Duration {
	if l := d.of[jobType]; l != nil {
		return l.last(l.n - l.before)
	}
	return nil
}

func median(sorted []time.Duration) time.Duration { return sorted[len(sorted)/2] }

// Running is an attempt that has not ended.
type Running struct {
	JobType string
	// For is how long it has run.
	For time.Duration
	// Early says that no attempt in the process had succeeded when this one began. The
	// first attempts may have to wait for one-time loading.
	Early bool
}

// Work describes the attempts of one version.
type Work struct {
	Durations *Durations
	Running   []Running
}

// Pace compares how long the attempts at one job type take.
type Pace struct {
	JobType string
	// Median is the candidate's median; zero while none of its attempts has ended.
	// Usual is the serving version's median: that of its latest attempts or that of its
	// attempts since the trial began, whichever is longer.
	Median, Usual time.Duration
	// current says that Usual includes attempts since the trial began. Then it reflects
	// anything that slows both versions down, such as a busy machine.
	current bool
	// candidate and serving count attempts, and the slow ones as failed. They include a
	// running attempt only once it is slow.
	candidate, serving Tally
	// waiting says that a running attempt of the candidate has taken longer than usual,
	// but is not slow yet.
	waiting bool
}

// Paces compares the job types that both versions have run. An attempt is slow if it takes
// more than slowdown times as long as usual, and at least leastDelay longer.
func Paces(candidate, serving Work, slowdown float64) []Pace {
	running := make(map[string]bool)
	for _, r := range candidate.Running {
		running[r.JobType] = true
	}
	var paces []Pace
	for _, jobType := range slices.Sorted(maps.Keys(serving.Durations.of)) {
		usual, tried := serving.Durations.sorted(jobType), candidate.Durations.sorted(jobType)
		if len(usual) < leastKept || len(tried) == 0 && !running[jobType] {
			continue
		}
		p := Pace{JobType: jobType, Usual: median(usual)}
		if beside := serving.Durations.ofTrial(jobType); len(beside) >= leastKept {
			p.Usual, p.current = max(p.Usual, median(beside)), true
		}
		if len(tried) > 0 {
			p.Median = median(tried)
		}
		limit := max(time.Duration(slowdown*float64(p.Usual)), p.Usual+leastDelay)
		p.serving = slow(usual, limit)
		p.candidate = slow(tried, limit)
		for _, r := range serving.Running {
			if r.JobType == jobType && r.For > limit {
				p.serving.Add(true)
			}
		}
		for _, r := range candidate.Running {
			switch {
			case r.JobType != jobType:
			case r.For > limit && !r.Early:
				p.candidate.Add(true)
			case r.For > p.Usual:
				p.waiting = true
			}
		}
		paces = append(paces, p)
	}
	return paces
}

func slow(sorted []time.Duration, limit time.Duration) (t Tally) {
	for _, took := range sorted {
		t.Add(took > limit)
	}
	return t
}

// Slower reports whether the candidate is clearly slower: its share of slow attempts is
// larger by at least 50 points, and chance alone would show that less often than the
// odds, by the test of Worse. It needs attempts of the serving version since the trial
// began.
func (p Pace) Slower(odds float64) bool {
	return p.current && worse(p.candidate, p.serving, leastSlower, odds)
}

// Unsure reports whether the candidate looks slower, but chance may be the reason. It
// also returns true if none of the candidate's attempts has ended, and one takes longer
// than usual.
func (p Pace) Unsure() bool {
	return p.looksSlower() && (p.candidate.Ended < enough || !p.current) || p.candidate.Ended == 0 && p.waiting
}

// Doubtful reports whether the candidate looks slower after more than one attempt.
func (p Pace) Doubtful() bool { return p.looksSlower() && p.candidate.Failed >= leastSlow }

func (p Pace) looksSlower() bool {
	return p.candidate.Failed > 0 && p.candidate.rate()-p.serving.rate() >= leastSlower
}

// Ratio returns the candidate's median divided by the usual one; 0 while none of its
// attempts has ended.
func (p Pace) Ratio() float64 { return float64(p.Median) / float64(max(p.Usual, 1)) }

// Counts returns how many of the candidate's attempts are slow, and how many attempts
// that is out of.
func (p Pace) Counts() (slow, of int) { return p.candidate.Failed, p.candidate.Ended }
