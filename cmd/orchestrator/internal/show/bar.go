package show

import (
	"fmt"
	"strings"
	"time"
)

// Progress is the progress of a long task.
type Progress struct {
	// Noun is what is counted, in the singular.
	Noun    string
	Done    int
	Refused int
	// Share is how much of the task is done, from 0 to 1; negative if unknown.
	Share   float64
	Elapsed time.Duration
}

const (
	barWidth = 24
	// leastBar is the width below which a bar says nothing.
	leastBar = 4
)

// Within draws the progress in so many columns: the numbers and, if the share is
// known, the remaining time and a bar. A narrow screen gets a shorter bar, or none.
func (p Progress) Within(columns int) string {
	var parts []string
	if p.Share >= 0 {
		parts = append(parts, fmt.Sprintf("%3.0f%%", 100*min(p.Share, 1)))
	}
	parts = append(parts, Plural(p.Done, p.Noun), Count(p.rate())+"/s")
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

// left is the remaining time, if the task continues at its present rate.
func (p Progress) left() (time.Duration, bool) {
	if p.Share <= 0 || p.Share >= 1 || p.Elapsed < time.Second {
		return 0, false
	}
	return time.Duration(float64(p.Elapsed) * (1 - p.Share) / p.Share).Round(time.Second), true
}
