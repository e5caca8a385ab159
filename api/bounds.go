package api

import (
	"fmt"
	"net/http"
)

// What no client of ours comes near. The server bounds the size of the whole
// header; many small fields cost more than their bytes.
const (
	maxHeaderFields = 100
	maxURLBytes     = 8 << 10
)

// bounded refuses requests whose header is beyond all need.
func bounded(next http.Handler) http.Handler {
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
