package host

import (
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
)

// startAlone is how many attempts can be alone at once before any has shown what
// becomes of them.
const startAlone = 2

// ramp is how many attempts of a generation can be alone at once: a few at first,
// one more for each that its process survives, half as many for each that kills it.
// So a process's worth of innocent suspects is cleared in a few rounds, while a
// handler that dies whatever it is given costs few processes at once. The fleet
// guards it.
type ramp struct {
	// allowed is never below startAlone.
	allowed int
	// running counts the attempts that have, or wait for, a process of their
	// own; of those of a job type, ofType.
	running int
	ofType  map[string]int
	// rested is when the last of them ended.
	rested time.Time
}

func newRamp() ramp { return ramp{allowed: startAlone, ofType: make(map[string]int)} }

func (r *ramp) begin(jobType string, restAfter time.Duration) {
	if r.rests(restAfter) {
		r.allowed = startAlone
	}
	r.running++
	r.ofType[jobType]++
}

func (r *ramp) end(jobType string) {
	r.running--
	if r.ofType[jobType]--; r.ofType[jobType] == 0 {
		delete(r.ofType, jobType)
	}
	r.rested = time.Now()
}

// rests reports whether nothing has been alone for so long that what was learned
// says nothing about the next suspects.
func (r *ramp) rests(after time.Duration) bool {
	return r.running == 0 && time.Since(r.rested) > after
}

// cleared counts an attempt that its process has survived.
func (r *ramp) cleared(bound int) { r.allowed = max(min(r.allowed+1, bound), startAlone) }

// failed counts a process that has died, or did not come up.
func (r *ramp) failed() { r.allowed = max(r.allowed/2, startAlone) }

// free is how many more attempts can be alone now, within a bound.
func (r *ramp) free(bound int, restAfter time.Duration) int {
	allowed := r.allowed
	if r.rests(restAfter) {
		allowed = startAlone
	}
	return max(min(allowed, bound)-r.running, 0)
}

// freeAlone is how many more attempts can be alone now. The fleet is locked.
func (g *generation) freeAlone() int {
	if g.role != serving || g.draining.Err() != nil || g.aloneBreaker.holding() {
		return 0
	}
	return g.ramp.free(g.mostAlone(), g.settings.Backoff.StableAfter)
}

// mostAlone bounds the ramp: what is configured, and no more than the plugin's
// processes may have at once. The fleet is locked.
func (g *generation) mostAlone() int {
	return min(g.fleet.config.Isolated, max(g.config.Processes*g.config.capacity(g.manifest), startAlone))
}

// freeAloneOf is how many more attempts of a type can be alone now, by the bound of
// that type in each process. The fleet is locked.
func (g *generation) freeAloneOf(jobType string, most int) int {
	return max(g.config.Processes*most-g.ramp.ofType[jobType], 0)
}

// mayBeAlone reports whether another attempt of the type can be alone now. The fleet
// is locked.
func (g *generation) mayBeAlone(jobType string) bool {
	if g.freeAlone() < 1 {
		return false
	}
	most := boundsOf(g.manifest).most[jobType]
	return most == 0 || g.freeAloneOf(jobType, most) > 0
}

// capacity is how many attempts a process can have at once. The manifest may be nil.
func (c Config) capacity(m *message.Manifest) int {
	switch {
	case c.Concurrency > 0:
		return c.Concurrency
	case m != nil && m.Concurrency > 0:
		return m.Concurrency
	}
	return DefaultConcurrency
}
