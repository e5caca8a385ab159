package guard

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// window is the period of all limits.
const window = time.Minute

const (
	rows    = 4
	columns = 1 << 16 // One hash of 64 bits has a column for each row.
)

// subject is counted separately: a client's network, or the name of a caller.
type subject struct {
	network netip.Prefix
	name    string
}

// counter counts by subject over the past minute. It approximates the minute as the
// whole current window and the part of the previous one that the minute still
// covers. It assumes that the previous window's requests were spread evenly.
//
// It takes 2 MiB whatever the number of subjects, because counts are kept as a
// count-min sketch with conservative update (Estan and Varghese, 2002). Every
// subject has a cell in each row, and its count is the least of them. Cells are
// shared, so a count may be too high, but never too low. For one subject in 50 it is
// too high by more than 1/24,000 of all that is counted in a window, and only if the
// others' cells are as full. The counter of httprate is no alternative: it keeps an
// unbounded number of entries, and cannot count two subjects at once or not at all.
type counter struct {
	seed maphash.Seed

	mu                sync.Mutex
	began             time.Time
	current, previous *cells
}

type cells [rows][columns]uint32

func newCounter() *counter {
	return &counter{seed: maphash.MakeSeed(), began: time.Now(), current: &cells{}, previous: &cells{}}
}

// usage is the number of units that a subject has used in the current window, which
// began elapsed ago, and in the previous one.
type usage struct {
	current, previous int
	elapsed           time.Duration
}

// look returns the usage of the subject that has used most, and whether n more fit
// into the quota.
func (c *counter) look(subjects []subject, n, quota int) (usage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most(subjects, n, quota)
}

// take is like look, but also counts n for each of the subjects if they fit. It
// returns the usage from before.
func (c *counter) take(subjects []subject, n, quota int) (usage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, fits := c.most(subjects, n, quota)
	if fits {
		for _, s := range subjects {
			c.current.add(maphash.Comparable(c.seed, s), n)
		}
	}
	return used, fits
}

func (c *counter) most(subjects []subject, n, quota int) (most usage, fits bool) {
	most.elapsed = c.turn(time.Now())
	for _, s := range subjects {
		hash := maphash.Comparable(c.seed, s)
		used := usage{current: c.current.count(hash), previous: c.previous.count(hash), elapsed: most.elapsed}
		if used.total() > most.total() {
			most = used
		}
	}
	return most, most.total()+float64(n) <= float64(quota)
}

// turn begins a new window if the current one is over, and returns how long ago it
// began.
func (c *counter) turn(now time.Time) time.Duration {
	switch passed := now.Sub(c.began); {
	case passed >= 2*window:
		*c.current, *c.previous = cells{}, cells{}
		c.began = now
	case passed >= window:
		c.current, c.previous = c.previous, c.current
		*c.current = cells{}
		c.began = c.began.Add(window)
	}
	return now.Sub(c.began)
}

func (c *cells) count(hash uint64) int {
	least := c[0][uint16(hash)]
	for row := 1; row < rows; row++ {
		least = min(least, c[row][uint16(hash>>(16*row))])
	}
	return int(least)
}

// add raises cells only as far as the subject needs.
func (c *cells) add(hash uint64, n int) {
	sum := uint32(c.count(hash) + n)
	for row := range rows {
		cell := &c[row][uint16(hash>>(16*row))]
		*cell = max(*cell, sum)
	}
}

func (u usage) total() float64 { return float64(u.current) + float64(u.previous)*u.weight() }

// weight is the part of the previous window that the past minute still covers.
func (u usage) weight() float64 { return 1 - float64(u.elapsed)/float64(window) }

// fades returns how long it takes until nothing that was counted so far counts any
// more.
func (u usage) fades() time.Duration {
	switch {
	case u.current > 0:
		return 2*window - u.elapsed
	case u.previous > 0:
		return window - u.elapsed
	}
	return 0
}

// wait returns how long it takes until n more fit into the quota, if nothing else is
// counted. The quota must be at least n.
func (u usage) wait(n, quota int) time.Duration {
	room := float64(quota - n)
	if u.total() <= room {
		return 0
	}
	// falls returns the time, from the beginning of a window, after which the previous
	// window's count weighs no more than room.
	falls := func(count int, room float64) time.Duration {
		return time.Duration((1 - room/float64(count)) * float64(window))
	}
	if float64(u.current) <= room {
		return falls(u.previous, room-float64(u.current)) - u.elapsed
	}
	return window - u.elapsed + falls(u.current, room)
}
