package store

import "time"

// A search that has a time examines leastStretch rows first, each of which may have to come from a
// disk, and then more at a time while that takes little, up to mostStretch. There are few lengths,
// because each is a statement of its own.
const (
	leastStretch  = 100
	stretchFactor = 8
	mostStretch   = leastStretch * stretchFactor * stretchFactor * stretchFactor
)

// inStretches examines up to most rows, in stretches, until examine says that the search has
// ended. It begins no stretch that would not end within the time, by how long the last one took.
// The first is always examined. Without a time, all rows are one stretch.
func inStretches(within time.Duration, most int, examine func(rows int) (ended bool, err error)) error {
	if within == 0 {
		_, err := examine(most)
		return err
	}
	began := time.Now()
	for rows := leastStretch; ; {
		rows = min(rows, most)
		asked := time.Now()
		ended, err := examine(rows)
		took, left := time.Since(asked), within-time.Since(began)
		if most -= rows; err != nil || ended || most == 0 || took > left {
			return err
		}
		if 2*stretchFactor*took < left {
			rows = min(rows*stretchFactor, mostStretch)
		}
	}
}
