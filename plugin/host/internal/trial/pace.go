package trial

import (
	"maps"
	"slices"
	"time"
)

const (
	// kept is of how many attempts a version's durations are kept, for each job
	// type.
	kept = 64
	// leastKept is how many of them it takes to say what is usual.
	leastKept = 5
	// leastDelay is by how much an attempt must take longer than usual for
	// anybody to care.
	leastDelay = 5 * time.Millisecond
	// leastSlower is by how much the shares of slow attempts must differ: of a
	// version that takes longer throughout, most attempts are slow.
	leastSlower = 0.5
	// leastSlow is how many slow attempts are more than one odd job.
	leastSlow = 2
)

// Durations keeps how long attempts took that succeeded: of each job type the
// latest ones. The zero value is empty.
type Durations struct{ of map[string]*latest }

type latest struct {
	took   [kept]time.Duration
	n      int // how many there were in all
	before int // how many of them before the trial
}

// last returns the latest of them, n at most, sorted.
func (l *latest) last(n int) []time.Duration {
	var sorted []time.Duration
	for i := range min(n, l.n, kept) {
		sorted = append(sorted, l.took[(l.n-1-i)%kept])
	}
	slices.Sort(sorted)
	return sorted
}

// Add counts an attempt.
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

// BeginTrial has the attempts that are added from now on count as those of the
// trial.
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

// Running is an attempt under way.
type Running struct {
	JobType string
	// For is since when.
	For time.Duration
	// Early says that its process had not finished anything when it began: the
	// first attempts may have to wait for what is loaded once.
	Early bool
}

// Work is what is known of the attempts of one version.
type Work struct {
	Durations *Durations
	Running   []Running
}

// Pace compares how long the attempts at one job type take.
type Pace struct {
	JobType string
	// Median is the candidate's, zero while none of its attempts has ended;
	// Usual is that of the version that serves: of its latest attempts, or of those
	// since the trial began where that is more.
	Median, Usual time.Duration
	// abreast says that Usual takes in what happens to both versions now: a slow
	// database, or a busy machine.
	abreast bool
	// candidate and serving count the attempts of which it is known whether they
	// are slow, and as failed those that are. One that is still under way is known
	// to be slow once it has taken long enough.
	candidate, serving Tally
	// waiting says that an attempt of the candidate takes longer than usual
	// already, and cannot be counted yet.
	waiting bool
}

// Paces compares the job types that both versions have worked on. An attempt is slow
// if it takes more than slowdown times as long as usual, and leastDelay longer.
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
			p.Usual, p.abreast = max(p.Usual, median(beside)), true
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

// Slower reports whether the candidate is clearly slower: at least half of its
// attempts more than of the other's are slow, and that is no chance but for the
// given odds, by the test of Worse. It takes some attempts of the other beside it.
func (p Pace) Slower(odds float64) bool {
	return p.abreast && worse(p.candidate, p.serving, leastSlower, odds)
}

// Unsure reports whether the candidate looks slower, and too little is known to
// tell whether that means anything; or whether nothing is known of it, and its
// attempts take longer than usual already.
func (p Pace) Unsure() bool {
	return p.looksSlower() && (p.candidate.Ended < enough || !p.abreast) || p.candidate.Ended == 0 && p.waiting
}

// Doubtful reports whether the candidate looks slower after more than one attempt.
func (p Pace) Doubtful() bool { return p.looksSlower() && p.candidate.Failed >= leastSlow }

func (p Pace) looksSlower() bool {
	return p.candidate.Failed > 0 && p.candidate.rate()-p.serving.rate() >= leastSlower
}

// Ratio is how many times as long as usual the candidate takes; 0 while none of its
// attempts has ended.
func (p Pace) Ratio() float64 { return float64(p.Median) / float64(max(p.Usual, 1)) }

// Counts returns how many of the candidate's attempts are known to be slow, of how
// many.
func (p Pace) Counts() (slow, of int) { return p.candidate.Failed, p.candidate.Ended }
