package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// ownTimeKey is where an operation's metadata says that it bounds its work
// itself.
const ownTimeKey = "ownTime"

// ownTime marks an operation that bounds its work itself, because how long it
// may take depends on the request.
func ownTime(operation huma.Operation) huma.Operation {
	operation.Metadata[ownTimeKey] = true
	return operation
}

// deadline bounds the work on one request.
func deadline(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Operation().Metadata[ownTimeKey] != nil {
			next(ctx)
			return
		}
		bounded, cancel := context.WithTimeout(ctx.Context(), limit)
		defer cancel()
		next(huma.WithContext(ctx, bounded))
	}
}

// untilStopping bounds work by a time, and by that of the server.
func (s *service) untilStopping(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-bounded.Done():
		}
	}()
	return bounded, cancel
}

// allowTime puts off the deadline that the server has for writing the answer,
// by the time that an operation may take on top of the usual.
func allowTime(w http.ResponseWriter, r *http.Request, limit time.Duration) {
	if timeout := serverOf(r).WriteTimeout; timeout > 0 {
		// A writer that is no connection has no deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + timeout))
	}
}

// serverOf returns the server that has received the request, or one without
// any settings.
func serverOf(r *http.Request) *http.Server {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		return server
	}
	return &http.Server{}
}
