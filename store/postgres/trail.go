package postgres

import (
	"slices"
	"time"
)

// maxMarks is how many marks a trail keeps: at one a second, the last minutes exactly, and
// hours before with ever larger gaps.
const maxMarks = 512

// Position is which database a server has, and how far it is in the log.
type Position struct {
	Cluster  int64 // the same for a primary and its standbys
	Database int64 // the same in both, too
	// Timeline is the one on which a primary writes; 0 for a standby.
	Timeline int32
	// Position is in bytes: what a standby has replayed, or a primary has flushed.
	Position int64
	// Since is how long ago the last commit was made that a standby has replayed, by the clocks of
	// both servers; nil if it has replayed none. On an idle primary, it grows.
	Since *time.Duration
}

// of reports whether a standby at p belongs to a primary at other.
func (p Position) of(other Position) bool {
	return p.Cluster == other.Cluster && p.Database == other.Database
}

// mark says that the primary was at a position in the log, or further, at an instant.
type mark struct {
	at       time.Time
	position int64
}

// trail is where in its log the primary was, and when: by this process's clock, which only
// measures how much time has passed. It tells the age of what a standby shows: a standby that
// has replayed the log up to a mark shows everything that was committed before. The
// clocks of the servers do not matter, nothing has to be written, and an idle primary, whose
// last commit is long ago, leaves marks like any other.
type trail struct {
	last  Position
	marks []mark // the oldest first
}

// add records where the primary was at the instant, which is from before it was asked. If
// it is another server than before, or has lost a part of its log, the trail begins anew.
func (t *trail) add(at time.Time, p Position) {
	if !p.of(t.last) || p.Timeline != t.last.Timeline || p.Position < t.last.Position {
		t.marks = nil
	}
	t.last = p
	if len(t.marks) == maxMarks {
		thinned := t.marks[:0]
		for i, m := range t.marks {
			if i >= maxMarks/2 || i%2 == 0 {
				thinned = append(thinned, m)
			}
		}
		t.marks = thinned
	}
	t.marks = append(t.marks, mark{at, p.Position})
}

// known reports whether the primary has left a mark.
func (t *trail) known() bool { return len(t.marks) > 0 }

// asOf returns the latest instant of which a standby at the position shows everything. It is
// false if the standby is behind all marks.
func (t *trail) asOf(position int64) (time.Time, bool) {
	after, _ := slices.BinarySearchFunc(t.marks, position, func(m mark, position int64) int {
		if m.position <= position {
			return -1
		}
		return 1
	})
	if after == 0 {
		return time.Time{}, false
	}
	return t.marks[after-1].at, true
}
