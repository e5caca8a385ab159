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

// LogLine is a line that a handler logged in an attempt. The database keeps its JSON.
type LogLine struct {
	// Time is by the clock of the plugin process.
	Time    time.Time `json:"time"`
	Level   LogLevel  `json:"level"`
	Message string    `json:"message"`
	// Attributes is a JSON object; nil for none.
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Truncated says that the message was cut or attributes were left out, because they
	// were too long.
	Truncated bool `json:"truncated,omitempty"`
	// Dropped is how many lines the plugin process has dropped since the last line that
	// says so, because they were not read fast enough.
	Dropped int `json:"-"`
}

// AttemptLog has the last lines that an attempt logged.
type AttemptLog struct {
	// Number is the attempt's, counted from 1; Fence distinguishes attempts of the same
	// number.
	Number int
	Fence  int64
	// Lines are in order, oldest first.
	Lines []LogLine
	// Dropped is how many lines before them were not kept.
	Dropped int64
}
