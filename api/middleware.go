package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// observe writes the access log at debug level, and turns a panic into an answer.
// Unless measure is nil, it calls measure for every request.
func observe(log *slog.Logger, measure func(route, method string, status int, took time.Duration)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			if measure != nil {
				// Deferred first, so that aborted answers count.
				defer func() {
					route := chi.RouteContext(r.Context()).RoutePattern()
					measure(route, r.Method, statusFor(r, answer.Status()), time.Since(began))
				}()
			}
			defer func() {
				if panicked := recover(); panicked != nil {
					answerPanic(answer, r, log, panicked)
				}
				if !log.Enabled(r.Context(), slog.LevelDebug) {
					return
				}
				log.DebugContext(r.Context(), "request",
					"client", middleware.GetClientIP(r.Context()),
					"method", r.Method, "path", r.URL.Path, "status", answer.Status(),
					"bytes", answer.BytesWritten(), "took", time.Since(began))
			}()
			next.ServeHTTP(answer, r)
		})
	}
}

// statusFor returns the status that the client has seen: 0 if the request failed
// because the client left.
func statusFor(r *http.Request, status int) int {
	if status >= http.StatusInternalServerError && errors.Is(r.Context().Err(), context.Canceled) {
		return 0
	}
	return status
}

// answerPanic logs the panic and answers 500. An answer that has begun is aborted.
// Huma panics when it cannot write, mostly because the client left.
func answerPanic(w middleware.WrapResponseWriter, r *http.Request, log *slog.Logger, panicked any) {
	if err, ok := panicked.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(panicked)
	}
	if w.Status() != 0 && r.Context().Err() != nil {
		log.DebugContext(r.Context(), "answer broken off", "path", r.URL.Path, "error", panicked)
		panic(http.ErrAbortHandler)
	}
	log.ErrorContext(r.Context(), "request panicked",
		"method", r.Method, "path", r.URL.Path, "panic", panicked, "stack", string(debug.Stack()))
	if w.Status() != 0 {
		panic(http.ErrAbortHandler)
	}
	writeProblem(w, http.StatusInternalServerError, "internal error")
}

// protect refuses requests that a page of another site makes a browser send. It
// forbids browsers to guess the content type of answers, and forbids caches to store
// them.
func protect(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if err := crossOrigin.Check(r); err != nil {
			writeProblem(w, http.StatusForbidden, "cross-origin request refused")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, http.StatusNotFound, "no such resource")
}

// methodNotAllowed lists the methods that the path has.
func methodNotAllowed(router chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		if router.Match(chi.NewRouteContext(), http.MethodGet, r.URL.Path) {
			allowed = append(allowed, http.MethodGet, http.MethodHead)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if router.Match(chi.NewRouteContext(), method, r.URL.Path) {
				allowed = append(allowed, method)
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeProblem(w, http.StatusMethodNotAllowed, "the resource does not have this method")
	}
}

// ReadOnly lets those requests through that only read. It answers the others with 409 and why nothing can
// be changed, for a ledger that takes no changes. They include the previews of changes.
func ReadOnly(next http.Handler, why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Path == "/schedules/preview"
		if !reads {
			writeProblem(w, http.StatusConflict, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}
