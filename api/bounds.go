package api

import (
	"fmt"
	"net/http"
)

// Limits that no sensible client reaches. Many small fields cost more than their
// bytes.
const (
	maxHeaderFields = 100
	maxURLBytes     = 8 << 10
)

// BoundHeader refuses requests whose header has more bytes than the limit, with a
// problem document. net/http would answer in plain text; give it a larger limit.
func BoundHeader(limit int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := len(r.RequestURI)
		for name, values := range r.Header {
			for _, value := range values {
				size += len(name) + len(": \r\n") + len(value)
			}
		}
		if size > limit {
			w.Header().Set("Connection", "close")
			writeProblem(w, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the header is larger than %d bytes", limit))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// CloseAfterChunks closes the connection after a request whose length a proxy may
// read differently: one with Transfer-Encoding, or of HTTP/1.0. net/http silently
// ignores a Content-Length beside Transfer-Encoding, and Transfer-Encoding in
// HTTP/1.0. A proxy that uses the other of the two takes part of the body for the
// next request (RFC 9112, section 6.1); a closed connection has none.
func CloseAfterChunks(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// boundFields refuses requests with too many header fields or too long a URL.
func boundFields(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fields := 0
		for _, values := range r.Header {
			fields += len(values)
		}
		switch {
		case fields > maxHeaderFields:
			writeProblem(w, http.StatusRequestHeaderFieldsTooLarge,
				fmt.Sprintf("the header has more than %d fields", maxHeaderFields))
		case len(r.RequestURI) > maxURLBytes:
			writeProblem(w, http.StatusRequestURITooLong, fmt.Sprintf("the URL is longer than %d bytes", maxURLBytes))
		default:
			next.ServeHTTP(w, r)
		}
	})
}
