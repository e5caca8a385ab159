package job

import (
	"encoding/json"
	"time"
)

// LogLevel is the severity of a log line.
type LogLevel string

// The levels of log lines.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogLine is one record that a handler has logged in an attempt. Its JSON is
// what the database keeps.
type LogLine struct {
	// Time is by the handler's clock.
	Time    time.Time `json:"time"`
	Level   LogLevel  `json:"level"`
	Message string    `json:"message"`
	// Attributes is a JSON object; nil for none.
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Truncated says that the message was cut, or attributes were left out,
	// because they were too long.
	Truncated bool `json:"truncated,omitempty"`
	// Dropped is how many lines the handler's process has dropped since it last
	// said so, because nobody kept up with it.
	Dropped int `json:"-"`
}

// AttemptLog is the end of what an attempt has logged.
type AttemptLog struct {
	// Number is the attempt's, counted from 1; Fence distinguishes attempts of the same
	// number.
	Number int
	Fence  int64
	// Lines are the last ones, oldest first.
	Lines []LogLine
	// Dropped is how many lines before them were not kept.
	Dropped int64
}
