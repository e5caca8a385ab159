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

const (
	barWidth = 24
	// leastBar is how wide a bar must be to tell anything.
	leastBar = 4
)

// Within draws the progress: a bar and the time that is left when the share
// is known, and the numbers. Where columns are short the bar is shorter, or
// none.
func (p Progress) Within(columns int) string {
	var parts []string
	if p.Share >= 0 {
		parts = append(parts, fmt.Sprintf("%3.0f%%", 100*min(p.Share, 1)))
	}
	parts = append(parts, Plural(p.Done, "job"), Count(p.rate())+"/s")
	if p.Refused > 0 {
		parts = append(parts, Count(p.Refused)+" refused")
	}
	if left, known := p.left(); known {
		parts = append(parts, Age(left)+" left")
	}
	text := strings.Join(parts, gap)
	if bar := min(columns-Width(text)-1, barWidth); p.Share >= 0 && bar >= leastBar {
		filled := int(min(p.Share, 1) * float64(bar))
		text = strings.Repeat("█", filled) + strings.Repeat("░", bar-filled) + " " + text
	}
	return text
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
