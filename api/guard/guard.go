// Package guard decides who may call the API, for which tenant, and how often.
//
// A request passes four steps. Client determines its address. Admit identifies its
// caller, and refuses wrong credentials. Permit checks that the caller has the scope
// of the operation. Take counts it against the rate limits. Nothing is stored on disk
// or shared between processes, except for the sessions of browsers: see Sessions.
package guard

import (
	"log/slog"
	"net/netip"
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
