package tracing

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// complainEvery is how often lost spans are reported at most.
	complainEvery = time.Minute
	// maxComplaint bounds the text of a collector, in bytes.
	maxComplaint = 1 << 10
	// minSecret is the length from which on a value is blanked, in bytes.
	minSecret = 4
)

// complaints writes OpenTelemetry's errors to standard error, which the orchestrator
// logs.
type complaints struct {
	to      io.Writer
	secrets []string // a collector may repeat them; the longest first

	mu    sync.Mutex
	again time.Time
}

// Handle implements OpenTelemetry's ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.again) {
		c.again = now.Add(complainEvery)
		fmt.Fprintln(c.to, "tracing, jobs are not affected:", c.safe(err.Error()))
	}
}

// safe returns a text without secrets, and not too long.
func (c *complaints) safe(text string) string {
	for _, secret := range c.secrets {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	if len(text) > maxComplaint {
		text = strings.ToValidUTF8(text[:maxComplaint], "") + " ..."
	}
	return text
}
