package guard

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Refuse writes an answer of an HTTP status, with a sentence for the client.
type Refuse func(w http.ResponseWriter, status int, detail string)

// Admit identifies the caller of each request. It refuses wrong credentials on
// every path, and missing ones on paths that need them.
func (g *Guard) Admit(refuse Refuse) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if g == nil || g.access == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if len(r.Header["Authorization"]) > 0 {
				known := g.login(w, r, refuse)
				if known == nil {
					return
				}
				r = r.WithContext(context.WithValue(r.Context(), callerKey{}, known))
				r.Header.Del("Authorization") // Nothing later needs it.
			}
			if err := g.admit(r); err != nil {
				RefuseAs(w, err, refuse)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// RefuseAs answers with the error of Permit.
func RefuseAs(w http.ResponseWriter, err error, refuse Refuse) {
	if errors.Is(err, ErrForbidden) {
		refuse(w, http.StatusForbidden, err.Error())
		return
	}
	challenge(w)
	refuse(w, http.StatusUnauthorized, err.Error())
}

// challenge lists the accepted schemes. Browsers ask for the first.
func challenge(w http.ResponseWriter) {
	w.Header()["Www-Authenticate"] = []string{
		`Basic realm="holdfast", charset="UTF-8"`, `Bearer realm="holdfast"`,
	}
}

func (g *Guard) admit(r *http.Request) error {
	switch {
	case isProbe(r.URL.Path):
		return nil
	case isOperators(r.URL.Path):
		return g.Permit(r.Context(), Operate)
	case callerOf(r.Context()) == nil && (g.access.closed || !isLocal(r)):
		return ErrUnknownCaller
	}
	return nil
}

func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }

// isOperators reports whether a path is for operators, even if it is not a route.
func isOperators(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "debug" || first == "metrics" || first == "dead-letter"
}
