package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

func TestOperationsAreForThoseWhomTheyAreMarkedFor(t *testing.T) {
	g := guard.New(guard.Config{Access: &guard.Access{NoPassword: true, Closed: true, Tokens: []guard.Token{
		{Name: "reader", Digest: guard.DigestOf("reader"), Scopes: []guard.Scope{guard.Read}},
		{Name: "bound", Digest: guard.DigestOf("bound"), Scopes: guard.Scopes(), Tenant: "acme"},
		{Name: "free", Digest: guard.DigestOf("free"), Scopes: guard.Scopes()},
	}}})
	router := chi.NewMux()
	router.Use(g.Client, g.Admit(writeProblem))
	routes := humachi.New(router, humaConfig("test"))
	guardOperations(routes, g)
	for path, mark := range map[string]func(huma.Operation) huma.Operation{
		"/forgotten": func(o huma.Operation) huma.Operation { return o },
		"/read":      func(o huma.Operation) huma.Operation { return scoped(guard.Read, o) },
		"/all":       func(o huma.Operation) huma.Operation { return acrossTenants(scoped(guard.Read, o)) },
		"/also-all":  func(o huma.Operation) huma.Operation { return scoped(guard.Read, acrossTenants(o)) },
	} {
		huma.Register(routes, mark(huma.Operation{OperationID: path, Method: http.MethodGet, Path: path, Hidden: path == "/forgotten"}),
			func(context.Context, *struct{}) (*struct{}, error) { return nil, nil })
	}
	for _, c := range []struct {
		path                string
		reader, bound, free int
	}{
		{path: "/forgotten", reader: 403, bound: 204, free: 204},
		{path: "/read", reader: 204, bound: 204, free: 204},
		{path: "/all", reader: 204, bound: 403, free: 204},
		{path: "/also-all", reader: 204, bound: 403, free: 204},
	} {
		for token, want := range map[string]int{"reader": c.reader, "bound": c.bound, "free": c.free} {
			request := httptest.NewRequest(http.MethodGet, c.path, nil)
			request.Header.Set("Authorization", "Bearer "+token)
			answer := httptest.NewRecorder()
			router.ServeHTTP(answer, request)
			require.Equal(t, want, answer.Code, "%s by %s", c.path, token)
		}
	}
}
