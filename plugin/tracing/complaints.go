package tracing

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// complainEvery is how often it is told, at most, that spans are lost.
	complainEvery = time.Minute
	// maxComplaint bounds what a collector has to say, in bytes.
	maxComplaint = 1 << 10
	// minSecret is how short a value may be and still be blanked, in bytes.
	minSecret = 4
)

// complaints tells of OpenTelemetry's errors: on standard error, whose lines the
// orchestrator logs.
type complaints struct {
	to      io.Writer
	secrets []string // which a collector may repeat, the longest first

	mu    sync.Mutex
	again time.Time
}

// Handle implements OpenTelemetry's ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.After(c.again) {
		c.again = now.Add(complainEvery)
		fmt.Fprintln(c.to, "tracing; jobs go on:", c.fit(err.Error()))
	}
}

// fit is a text without secrets, and not too long.
func (c *complaints) fit(text string) string {
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
