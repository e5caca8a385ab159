package tracing

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

// complaint is a log line that is written once a minute at most, with the number of
// spans dropped since the last one.
type complaint struct {
	log     *slog.Logger
	message string

	again time.Time // when it may be logged again
	spans int64     // dropped since the last line
	last  string    // what went wrong
}

// of adds spans that were dropped, perhaps none, and logs them if a line is due.
func (c *complaint) of(spans int64, reason string) {
	c.spans += spans
	c.last = reason
	if now := time.Now(); !now.Before(c.again) {
		c.again = now.Add(otlp.ComplainEvery)
		c.write()
	}
}

// rest logs what was dropped since the last line.
func (c *complaint) rest() {
	if c.spans > 0 {
		c.write()
	}
}

func (c *complaint) write() {
	attributes := []slog.Attr{slog.Int64("spans", c.spans)}
	if c.last != "" {
		attributes = append(attributes, slog.String("error", c.last))
	}
	c.log.LogAttrs(context.Background(), slog.LevelWarn, c.message, attributes...)
	c.spans = 0
}
