package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
)

func TestOperationsAreForThoseWhomTheyAreMarkedFor(t *testing.T) {
	g := guard.New(guard.Config{Access: &guard.Access{NoPassword: true, Closed: true, Tokens: []guard.Token{
		{Name: "reader", Digest: guard.DigestOf("reader"), Scopes: []guard.Scope{guard.Read}},
		{Name: "bound", Digest: guard.DigestOf("bound"), Scopes: guard.Scopes(), Tenant: "acme"},
		{Name: "free", Digest: guard.DigestOf("free"), Scopes: guard.Scopes()},
	}}})
	routes := chi.NewMux()
	routes.Use(g.Client, g.Admit(writeProblem))
	r := newRouter(routes, g, audit.NewRecorder(nil, slog.New(slog.DiscardHandler), ""), slog.New(slog.DiscardHandler), deadline{usual: time.Minute})
	nothing := func(context.Context, *struct{}) (*struct{}, error) { return nil, nil }
	add(r, "GET /operate", "operate", guard.Operate, nothing)
	add(r, "GET /read", "read", guard.Read, nothing)
	add(r, "GET /all", "all", guard.Read, nothing, acrossTenants)
	for _, c := range []struct {
		path                string
		reader, bound, free int
	}{
		{path: "/operate", reader: 403, bound: 200, free: 200},
		{path: "/read", reader: 200, bound: 200, free: 200},
		{path: "/all", reader: 200, bound: 403, free: 200},
	} {
		for token, want := range map[string]int{"reader": c.reader, "bound": c.bound, "free": c.free} {
			request := httptest.NewRequest(http.MethodGet, c.path, nil)
			request.Header.Set("Authorization", "Bearer "+token)
			answer := httptest.NewRecorder()
			routes.ServeHTTP(answer, request)
			require.Equal(t, want, answer.Code, "%s by %s", c.path, token)
		}
	}
}
