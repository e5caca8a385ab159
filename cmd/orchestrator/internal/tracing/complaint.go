package tracing

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// complainEvery is how often it is logged, at most, that spans were lost.
	complainEvery = time.Minute
	// maxComplaint bounds what a collector says in a line of the log, in bytes.
	maxComplaint = 1 << 10
	// minSecret is how short a word of a header may be and still be blanked, in bytes.
	minSecret = 4
)

// complaint is a line of the log that comes once a minute at most, with how many
// spans were dropped since the last one.
type complaint struct {
	log     *slog.Logger
	message string

	again time.Time // when it may be logged again
	spans int64     // were dropped since
	last  string    // what went wrong
}

// of notes that spans were dropped, perhaps none, and logs it when it may.
func (c *complaint) of(spans int64, reason string) {
	c.spans += spans
	c.last = reason
	if now := time.Now(); !now.Before(c.again) {
		c.again = now.Add(complainEvery)
		c.tell()
	}
}

// rest logs what was dropped since the last line.
func (c *complaint) rest() {
	if c.spans > 0 {
		c.tell()
	}
}

func (c *complaint) tell() {
	attributes := []slog.Attr{slog.Int64("spans", c.spans)}
	if c.last != "" {
		attributes = append(attributes, slog.String("error", c.last))
	}
	c.log.LogAttrs(context.Background(), slog.LevelWarn, c.message, attributes...)
	c.spans = 0
}

// secrets are words of headers, which a collector may repeat, the longest first: a
// short one may be a part of a longer, whose rest would be left.
type secrets []string

func secretsOf(headers map[string]string) secrets {
	var s secrets
	for _, value := range headers {
		for word := range strings.FieldsSeq(value) { // Bearer, and the token
			if len(word) >= minSecret {
				s = append(s, word)
			}
		}
	}
	slices.SortFunc(s, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}

// fit is what a collector says as it may be logged.
func (s secrets) fit(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	if cut := job.CleanText(text, maxComplaint); len(cut) < len(text) {
		return cut + " ..."
	}
	return text
}
