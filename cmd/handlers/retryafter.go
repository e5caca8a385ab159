package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// maxRetryAfter bounds the wait that a server may ask for.
const maxRetryAfter = 24 * time.Hour

// waitAsTold applies a Retry-After header: a number of seconds or a date. Without a
// valid one, the retry policy decides.
func waitAsTold(err error, header string, now time.Time) error {
	if seconds, parseErr := strconv.ParseUint(header, 10, 32); parseErr == nil {
		return plugin.RetryAfter(err, min(time.Duration(seconds)*time.Second, maxRetryAfter))
	}
	if at, parseErr := http.ParseTime(header); parseErr == nil {
		return plugin.RetryAfter(err, min(max(at.Sub(now), 0), maxRetryAfter))
	}
	return err
}
