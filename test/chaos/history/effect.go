package history

import (
	"fmt"
	"time"
)

// Effect is a line that a handler wrote. Handlers write each line with one write to a
// file that they opened with O_APPEND, so a killed process leaves whole lines, or half
// of its last one.
type Effect struct {
	Event   EffectEvent `json:"event"`
	JobID   string      `json:"jobId"`
	JobType string      `json:"jobType"`
	// Mark is what the handler found in the payload: which job that is for.
	Mark    string `json:"mark,omitempty"`
	Attempt int    `json:"attempt"`
	Fence   int64  `json:"fence"`
	// PID and PIDStarted are as in [Process].
	PID        int    `json:"pid"`
	PIDStarted uint64 `json:"pidStarted"`
	At         Nanos  `json:"at"`
	// Report is what the handler is about to report; only for Ended.
	Report Report `json:"report,omitempty"`
	// Says is in the result or the error that the handler is about to return, and names the
	// attempt; only for Ended, and empty if the handler does not say such a thing.
	Says string `json:"says,omitempty"`
	// Delay is for how long the handler asks to be left alone; only for Snoozes.
	Delay time.Duration `json:"delay,omitempty"`
	// FollowUps is how many jobs the attempt has submitted, to become real with its success;
	// only for Ended.
	FollowUps int `json:"followUps,omitempty"`
}

// Says is what an attempt puts into its result or its error.
func Says(job string, fence int64) string { return fmt.Sprintf("attempt %d of %s", fence, job) }

// EffectEvent says how far a handler was.
type EffectEvent string

// The events, in their order. Began is the first thing that a handler does, Done is its
// effect on the outside world, and Ended is the last thing before it returns. A
// handler that fails may have had no effect.
const (
	Began EffectEvent = "began"
	Done  EffectEvent = "effect"
	Ended EffectEvent = "ended"
)

// Report is what a handler reports.
type Report string

// The reports.
const (
	Succeeds  Report = "succeeds"
	Fails     Report = "fails"
	Permanent Report = "permanent"
	Snoozes   Report = "snoozes"
	Cancels   Report = "cancels"
	// Lost is for a handler that was told that its lease was lost.
	Lost Report = "lost"
)
