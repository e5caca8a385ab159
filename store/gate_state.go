package store

import (
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// ratePause is how long starts gather at a gate with a rate, unless that would waste
	// some. startsPause bounds the wait for jobs that were admitted, but not claimed yet.
	ratePause   = 20 * time.Millisecond
	startsPause = time.Second
)

// gateState is a gate that counts.
type gateState struct {
	gate   job.Gate
	stored *slotsRow // nil for nothing
	used   int
	limit  job.Limit
	// tokens are how many starts a rate has left, and outstanding how many admitted jobs
	// have not started.
	tokens float64
	// tokensAt is the time that the tokens are of: now, or that of a later start.
	tokensAt    time.Time
	outstanding int
	// charged are the jobs that have started, or never will, since the tokens were stored.
	charged []startRow
	wakeAt  time.Time
	// deep says that all jobs that were read from the lane last moved to other gates: more
	// are read than there is room for, to find one that need not.
	deep bool
}

// touch says that the gate's lane is looked at now, and how many slots were freed. A gate
// without a rate is only due because jobs moved from it.
func (g *gateState) touch(now time.Time, freed int) {
	g.deep = g.limit.Rate == nil && !g.wakeAt.IsZero() && !g.wakeAt.After(now)
	g.used, g.wakeAt = max(g.used-freed, 0), time.Time{}
}

// charge counts the starts since the tokens were counted last, each at its own time. A
// start that is counted late does no harm: it was outstanding until then.
func (g *gateState) charge(now time.Time, starts []startRow) {
	rate := g.limit.Rate
	at := now
	g.tokens = float64(rate.Burst)
	if g.stored != nil && g.stored.Tokens != nil && g.stored.TokensAt != nil {
		g.tokens, at = min(*g.stored.Tokens, g.tokens), *g.stored.TokensAt
	}
	pass := func(until time.Time) {
		if passed := until.Sub(at); passed > 0 {
			g.tokens = min(g.tokens+passed.Seconds()*perSecond(rate), float64(rate.Burst))
			at = until
		}
	}
	slices.SortFunc(starts, func(a, b startRow) int { return a.start().Compare(b.start()) })
	for _, s := range starts {
		if s.Waits {
			g.outstanding++
			continue
		}
		if s.StartedAt != nil {
			pass(*s.StartedAt)
			g.tokens--
		}
		g.charged = append(g.charged, s)
	}
	pass(now)
	g.tokensAt = at
}

func perSecond(rate *job.Rate) float64 { return float64(rate.Count) / rate.Period.Seconds() }

// full reports whether the gate has no slot for a job with the capacity.
func (g *gateState) full(capacity int) bool {
	limit, bounded := g.bound(capacity)
	return bounded && g.used >= limit
}

// bound is how many jobs may be active, for a job with the capacity.
func (g *gateState) bound(capacity int) (limit int, bounded bool) {
	switch {
	case g.limit.Concurrency != nil && capacity > 0:
		return min(*g.limit.Concurrency, capacity), true
	case g.limit.Concurrency != nil:
		return *g.limit.Concurrency, true
	}
	return capacity, capacity > 0
}

// startsLeft is how many jobs may be admitted, so that all that wait may start at once.
func (g *gateState) startsLeft() float64 { return g.tokens - float64(g.outstanding) }

// waitForStart makes the next round look at the gate when there may be a start.
func (g *gateState) waitForStart(now time.Time) {
	perSecond, burst := perSecond(g.limit.Rate), float64(g.limit.Rate.Burst)
	seconds := func(starts float64) time.Duration { return time.Duration(starts / perSecond * float64(time.Second)) }
	pause := max(seconds(1-g.startsLeft()), min(ratePause, seconds((burst-max(g.tokens, 1))/2)), time.Millisecond)
	if burst-float64(g.outstanding) < 1 { // only a start makes room
		pause = min(max(seconds(1), ratePause), startsPause)
	}
	g.lookAt(now.Add(pause))
}

func (g *gateState) lookAt(at time.Time) {
	if g.wakeAt.IsZero() || at.Before(g.wakeAt) {
		g.wakeAt = at
	}
}

// next is what to store of the gate. Tokens are stored when something was charged: they
// grow by themselves.
func (g *gateState) next() slotsRow {
	next := slotsRow{Gate: string(g.gate), Used: int32(g.used)} //nolint:gosec // it came from the database
	if !g.wakeAt.IsZero() {
		next.WakeAt = &g.wakeAt
	}
	switch {
	case g.limit.Rate == nil:
	case len(g.charged) > 0:
		next.Tokens, next.TokensAt = &g.tokens, &g.tokensAt
	case g.stored != nil:
		next.Tokens, next.TokensAt = g.stored.Tokens, g.stored.TokensAt
	}
	return next
}

// empty reports whether the row says nothing.
func (s *slotsRow) empty() bool { return s.Used == 0 && s.Tokens == nil && s.WakeAt == nil }

func (s *slotsRow) same(other *slotsRow) bool {
	return s.Used == other.Used && equal(s.Tokens, other.Tokens) && equalTimes(s.TokensAt, other.TokensAt) && equalTimes(s.WakeAt, other.WakeAt)
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

func equalTimes(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
