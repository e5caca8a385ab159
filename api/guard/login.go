package guard

import (
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
	client := []subject{{network: networkOf(r.Context())}}
	allowed := g.failures.look(client, 1)
	if allowed.Allowed {
		if known := g.access.recognise(r); known != nil {
			return known
		}
		allowed = g.failures.take(client, 1)
	}
	if unlogged, due := g.notices.next(time.Now()); due {
		// Not the user: people type their password in the wrong field.
		g.log.WarnContext(r.Context(), "wrong credentials", "client", middleware.GetClientIP(r.Context()),
			"blocked", !allowed.Allowed, "not_logged", unlogged)
	}
	if !allowed.Allowed {
		w.Header().Set("Retry-After", allowed.Header.Get("Retry-After"))
		refuse(w, http.StatusTooManyRequests, "too many wrong credentials; try again later")
		return nil
	}
	challenge(w)
	refuse(w, http.StatusUnauthorized, "the credentials are wrong")
	return nil
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
