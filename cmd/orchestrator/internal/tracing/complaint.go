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
	// complainEvery is the least time between two log lines about lost spans.
	complainEvery = time.Minute
	// maxComplaint bounds the collector's text in a log line, in bytes.
	maxComplaint = 1 << 10
	// minSecret is the length of the shortest word of a header that is blanked, in bytes.
	minSecret = 4
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
		c.again = now.Add(complainEvery)
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

// secrets are the words of headers, which a collector may repeat in its answers. The
// longest come first: blanking a short one inside a long one would leave the rest.
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

// fit returns a collector's text as it may be logged: blanked and cut.
func (s secrets) fit(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	if cut := job.CleanText(text, maxComplaint); len(cut) < len(text) {
		return cut + " ..."
	}
	return text
}
