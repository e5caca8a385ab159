package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// policy lets pages load from this server only, and run scripts from files only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Frame gives every answer under Root its headers, and turns problems into pages. It must come
// before everything that may refuse a request.
func Frame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Root && !strings.HasPrefix(r.URL.Path, Root+"/") {
			next.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		// With no-referrer, browsers would send forms with the origin null, which is refused.
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		framed := &framedWriter{ResponseWriter: w}
		next.ServeHTTP(framed, r.WithContext(context.WithValue(r.Context(), arrivalKey{}, time.Now())))
		if framed.refused {
			framed.page(r)
		}
	})
}

// arrivalKey is where the context of a request has the time of its arrival.
type arrivalKey struct{}

// arrivalOf is when the request arrived: a session may have been looked up since.
func arrivalOf(r *http.Request) time.Time {
	if at, known := r.Context().Value(arrivalKey{}).(time.Time); known {
		return at
	}
	return time.Now()
}

// framedWriter keeps a problem, and passes everything else on.
type framedWriter struct {
	http.ResponseWriter
	status  int
	refused bool
	problem bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (w *framedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *framedWriter) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if w.refused = media == v1.ProblemMedia; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *framedWriter) Write(text []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.refused {
		return w.problem.Write(text)
	}
	return w.ResponseWriter.Write(text)
}

// page answers with the problem as a page. It knows no caller: the request may have been refused
// before that.
func (w *framedWriter) page(r *http.Request) {
	problem := &v1.Problem{}
	if json.Unmarshal(w.problem.Bytes(), problem) != nil || problem.Status == 0 {
		problem = v1.NewProblem(w.status, http.StatusText(w.status))
	}
	v := &visit{request: r, writer: w.ResponseWriter, prefs: preferencesOf(r)}
	w.Header().Del("Content-Length")
	refusal(problem).write(v)
}
