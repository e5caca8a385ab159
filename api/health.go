package api

import (
	"context"
	"io"
	"net/http"
	"time"
)

// readyWithin is how long the database may take to answer a readiness probe.
const readyWithin = time.Second

// alive answers as long as the process serves at all.
func alive(w http.ResponseWriter, _ *http.Request) { writeOK(w) }

// ready answers 200 when requests can be served: the database answers.
func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := s.jobs.Ping(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready", "error", err)
		setRetryAfter(w)
		writeProblem(w, http.StatusServiceUnavailable, "the database does not answer")
		return
	}
	writeOK(w)
}

func writeOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
}
