package tracing

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

// complaints writes OpenTelemetry's errors to standard error, which the orchestrator
// logs.
type complaints struct {
	to      io.Writer
	secrets otlp.Secrets

	mu    sync.Mutex
	again time.Time
}

// Handle implements OpenTelemetry's ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.again) {
		c.again = now.Add(otlp.ComplainEvery)
		fmt.Fprintln(c.to, "tracing, jobs are not affected:", c.secrets.Fit(err.Error()))
	}
}
