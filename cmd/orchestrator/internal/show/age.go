package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Age formats a duration in the two units that matter: 0.4s, 12s, 3m12s, 5h07m, 3d4h.
// A negative duration, which comes from clocks that differ, is 0s.
func Age(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Seconds is Age for a number of seconds, with more digits below ten.
func Seconds(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	}
	return Age(d)
}

// Plural formats a number of things: 1 job, 2 jobs, 3 crashes.
func Plural[N ~int | ~int64](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "sh"):
		noun += "es"
	default:
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Count formats a number with its thousands set apart.
func Count[N ~int | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
