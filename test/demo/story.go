package main

import (
	"fmt"
	"time"
)

// story prints what happens, with the time since the demo began.
type story struct{ began time.Time }

func (s *story) scene(title string) { fmt.Printf("\n%s\n", title) }

func (s *story) say(format string, args ...any) {
	fmt.Printf("  %6.2fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *story) end() {
	fmt.Printf("\nEverything held. %.1f s in all.\n", time.Since(s.began).Seconds())
}

// short formats a duration.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}
