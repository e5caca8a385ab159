package guard

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5/middleware"
)

// failuresPerMinute is how often a client may send wrong credentials. After that,
// credentials are not looked at, so further guesses gain nothing.
const failuresPerMinute = 30

// noticeEvery is the time between two records of refused credentials.
const noticeEvery = time.Second

// login returns the caller whose credentials the request has, or answers and returns
// nil.
func (g *Guard) login(w http.ResponseWriter, r *http.Request, refuse Refuse) *caller {
	known, allowed := g.attempt(r.Context(), func() *caller { return g.access.recognise(r) })
	switch {
	case known != nil:
		return known
	case !allowed.Allowed:
		w.Header().Set("Retry-After", allowed.Header.Get("Retry-After"))
		refuse(w, http.StatusTooManyRequests, "too many wrong credentials; try again later")
		return nil
	}
	challenge(w)
	refuse(w, http.StatusUnauthorized, "the credentials are wrong")
	return nil
}

// attempt recognises a caller. It returns nil if the credentials are wrong, or were not
// looked at because the client is not allowed to try any.
func (g *Guard) attempt(ctx context.Context, recognise func() *caller) (*caller, Allowance) {
	client := []subject{{network: networkOf(ctx)}}
	allowed := g.failures.look(client, 1)
	if allowed.Allowed {
		if known := recognise(); known != nil {
			return known, allowed
		}
		allowed = g.failures.take(client, 1)
	}
	if unlogged, due := g.notices.next(time.Now()); due {
		// Not the user: people type their password in the wrong field.
		g.log.WarnContext(ctx, "wrong credentials", "client", middleware.GetClientIP(ctx),
			"blocked", !allowed.Allowed, "not_logged", unlogged)
	}
	return nil, allowed
}

// notices limits log records that a client can cause at will.
type notices struct {
	mu       sync.Mutex
	last     time.Time
	unlogged int
}

// next reports whether a record is due, and how many were skipped before it.
func (n *notices) next(now time.Time) (unlogged int, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.last.IsZero() && now.Sub(n.last) < noticeEvery {
		n.unlogged++
		return 0, false
	}
	unlogged, n.unlogged, n.last = n.unlogged, 0, now
	return unlogged, true
}
