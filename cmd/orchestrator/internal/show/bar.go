package show

import (
	"fmt"
	"strings"
	"time"
)

// Progress is how far a long work has come.
type Progress struct {
	Done    int
	Refused int
	// Share is how much of the work is done, from 0 to 1; negative when that
	// is not known.
	Share   float64
	Elapsed time.Duration
}

const barWidth = 24

// String draws the progress: a bar and the time that is left when the share
// is known, and the numbers.
func (p Progress) String() string {
	var parts []string
	if p.Share >= 0 {
		share := min(p.Share, 1)
		filled := int(share * barWidth)
		parts = append(parts, fmt.Sprintf("%s%s %3.0f%%",
			strings.Repeat("█", filled), strings.Repeat("░", barWidth-filled), 100*share))
	}
	parts = append(parts, Count(p.Done)+" jobs", Count(p.rate())+"/s")
	if p.Refused > 0 {
		parts = append(parts, Count(p.Refused)+" refused")
	}
	if left, known := p.left(); known {
		parts = append(parts, Age(left)+" left")
	}
	return strings.Join(parts, "  ")
}

func (p Progress) rate() int {
	if p.Elapsed <= 0 {
		return 0
	}
	return int(float64(p.Done) / p.Elapsed.Seconds())
}

// left assumes that the rest takes its time as what is done took its.
func (p Progress) left() (time.Duration, bool) {
	if p.Share <= 0 || p.Share >= 1 || p.Elapsed < time.Second {
		return 0, false
	}
	return time.Duration(float64(p.Elapsed) * (1 - p.Share) / p.Share).Round(time.Second), true
}
