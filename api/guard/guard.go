// Package guard decides who may call the API, for which tenant, and how often.
//
// A request passes three places. Client finds out its address. Admit finds
// out its caller and refuses who is not one. Permit, asked for each operation,
// compares the operation's scope with those of the caller; Take counts what
// is limited. Nothing is kept on disk and nothing is shared between processes.
package guard

import (
	"log/slog"
	"net/netip"
)

// Scope is what a caller may do.
type Scope string

// The scopes. None includes another.
const (
	// Submit is to make jobs, and to cancel, hold and release them.
	Submit Scope = "submit"
	// Read is to see jobs as clients see them.
	Read Scope = "read"
	// Operate is everything else: dead letters, metrics, and the insides.
	Operate Scope = "operate"
)

// Scopes are all of them.
func Scopes() []Scope { return []Scope{Submit, Read, Operate} }

// Limit names one of the rate limits.
type Limit string

// The limits: submitted jobs, requests that requeue dead jobs, and requests
// that only read.
const (
	Jobs    Limit = "jobs"
	Requeue Limit = "requeue"
	Reads   Limit = "reads"
)

// Config is what New needs.
type Config struct {
	// Access says who may call; nil for everybody.
	Access *Access
	// PerMinute has how much a client and a caller may take in a minute. A
	// limit that is absent is not kept.
	PerMinute map[Limit]int
	// Exempt are the networks whose clients no rate limit counts.
	Exempt []netip.Prefix
	// TrustedProxies are the networks of the reverse proxies whose
	// X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	Log            *slog.Logger
}

// Guard holds the credentials and the counters. A nil Guard lets everybody
// do everything. Its methods may be called concurrently.
type Guard struct {
	access   *access
	limits   map[Limit]*limiter
	exempt   []netip.Prefix
	proxies  []netip.Prefix
	failures *limiter
	notices  notices
	log      *slog.Logger
}

// New returns a Guard that has counted nothing.
func New(c Config) *Guard {
	g := &Guard{
		limits:   map[Limit]*limiter{},
		exempt:   c.Exempt,
		proxies:  c.TrustedProxies,
		failures: newLimiter("logins", failuresPerMinute),
		log:      c.Log,
	}
	if c.Access != nil {
		g.access = c.Access.digest()
	}
	for name, quota := range c.PerMinute {
		g.limits[name] = newLimiter(name, quota)
	}
	return g
}
