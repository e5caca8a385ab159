// Package guard decides who may call the API, for which tenant, and how often.
//
// A request passes three steps. Client determines its address. Admit identifies its
// caller, and refuses wrong credentials. Permit checks that the caller has the scope
// of the operation. Take counts what is limited. Nothing is stored on disk or shared
// between processes.
package guard

import (
	"log/slog"
	"net/netip"
)

// Scope is a kind of operation that a caller may use.
type Scope string

// The scopes. None includes another.
const (
	// Submit makes jobs, and cancels, holds and releases them.
	Submit Scope = "submit"
	// Read shows jobs as clients see them.
	Read Scope = "read"
	// Operate is everything else: dead letters, metrics, and /debug.
	Operate Scope = "operate"
)

// Scopes lists all scopes.
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
	// PerMinute is the quota of each limit: how much one client address, and one caller,
	// may use in a minute. A limit that is absent does not apply.
	PerMinute map[Limit]int
	// Exempt are the networks of clients without rate limits.
	Exempt []netip.Prefix
	// TrustedProxies are the networks of reverse proxies whose X-Forwarded-For is
	// used.
	TrustedProxies []netip.Prefix
	Log            *slog.Logger
}

// Guard holds the credentials and the counters. A nil Guard allows everything to
// everybody. Its methods may be called concurrently.
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
