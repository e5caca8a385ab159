package conformance

import (
	"encoding/json"
	"time"
)

// Status is how a check ended.
type Status string

// The ways in which a check ends.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Check is one rule of the protocol and whether the plugin follows it.
type Check struct {
	Name     string `json:"name"`
	Status   Status `json:"status"`
	Expected string `json:"expected"`
	// Happened is what the plugin did; for a skipped check, what it needs.
	Happened string `json:"happened"`
	// Fix says how to follow the rule; empty unless it is broken.
	Fix  string        `json:"fix,omitempty"`
	Took time.Duration `json:"-"`
}

// MarshalJSON gives the time in milliseconds.
func (c Check) MarshalJSON() ([]byte, error) {
	type plain Check
	return json.Marshal(struct {
		plain
		TookMs int64 `json:"tookMs"`
	}{plain(c), c.Took.Milliseconds()})
}

// Report is what Run has found, one entry for each check, in order.
type Report struct {
	// Version and Types are what the plugin declares; empty if it declares
	// nothing that can be used.
	Version string   `json:"version,omitempty"`
	Types   []string `json:"jobTypes,omitempty"`
	Checks  []Check  `json:"checks"`
}

// Count is how many checks ended with the status.
func (r Report) Count(status Status) int {
	n := 0
	for _, c := range r.Checks {
		if c.Status == status {
			n++
		}
	}
	return n
}
