package tracing

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// complainEvery is how often it is told, at most, that spans are lost.
const complainEvery = time.Minute

// complaints tells of OpenTelemetry's errors: on standard error, whose lines the
// orchestrator logs.
type complaints struct {
	to io.Writer

	mu    sync.Mutex
	again time.Time
}

// Handle implements OpenTelemetry's ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.again) {
		c.again = now.Add(complainEvery)
		fmt.Fprintln(c.to, "tracing; jobs go on:", err)
	}
}
