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
// every path, and missing ones on paths that need them. Under /ui, Sessions has
// done the latter before. Everywhere else it refuses the cookie of a session.
func (g *Guard) Admit(refuse Refuse) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if g == nil || g.access == nil {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case len(r.Header["Authorization"]) > 0:
				known := g.login(w, r, refuse)
				if known == nil {
					return
				}
				r = r.WithContext(context.WithValue(r.Context(), callerKey{}, known))
				r.Header.Del("Authorization") // Nothing later needs it.
			case !isUI(r.URL.Path) && len(r.CookiesNamed(SessionCookie)) > 0:
				challenge(w)
				refuse(w, http.StatusUnauthorized, "the session of a browser is only for /ui")
				return
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

// Screen is for paths and methods that are no operations, whose callers nobody else checks: it
// refuses callers who may not use what is for operators.
func (g *Guard) Screen(refuse Refuse) func(http.HandlerFunc) http.HandlerFunc {
	return func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if isOperators(r.URL.Path) {
				if err := g.Permit(r.Context(), operators(r.Method)); err != nil {
					RefuseAs(w, err, refuse)
					return
				}
			}
			next(w, r)
		}
	}
}

func (g *Guard) admit(r *http.Request) error {
	switch {
	case isProbe(r.URL.Path), isOpenUI(r.URL.Path):
		return nil
	case callerOf(r.Context()) == nil && isOperators(r.URL.Path):
		return ErrUnknownCaller
	case callerOf(r.Context()) == nil && (isUI(r.URL.Path) || g.access.closed || !isLocal(r)):
		return ErrUnknownCaller
	}
	return nil
}

func isProbe(path string) bool { return path == "/healthz" || path == "/readyz" }

// isUI reports whether a path is one of the UI, even if there is no such page.
func isUI(path string) bool { return path == "/ui" || strings.HasPrefix(path, "/ui/") }

// operators returns the scope that a path for operators needs at least.
func operators(method string) Scope {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return Observe
	}
	return Operate
}

// isOperators reports whether a path is for operators, even if it is not a route.
func isOperators(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "debug" || first == "metrics" || first == "dead-letter"
}

// isOpenUI reports whether a path is needed to log in.
func isOpenUI(path string) bool {
	return path == "/ui/login" || path == "/ui/link" || path == "/ui/logout" || strings.HasPrefix(path, "/ui/assets/")
}
