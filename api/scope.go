package api

import (
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// Where an operation's metadata says what its caller must be allowed to do,
// and that the answer is about all tenants.
const (
	scopeKey         = "scope"
	acrossTenantsKey = "acrossTenants"
)

// scoped says what the callers of an operation must be allowed to do.
func scoped(scope guard.Scope, operation huma.Operation) huma.Operation {
	return marked(scopeKey, scope, operation)
}

// acrossTenants keeps callers that are bound to a tenant from an operation.
func acrossTenants(operation huma.Operation) huma.Operation {
	return marked(acrossTenantsKey, true, operation)
}

func marked(key string, value any, operation huma.Operation) huma.Operation {
	if operation.Metadata == nil {
		operation.Metadata = map[string]any{}
	}
	operation.Metadata[key] = value
	return operation
}

// scopeOf takes an operation that forgot to say for one of operators.
func scopeOf(operation *huma.Operation) guard.Scope {
	if scope, ok := operation.Metadata[scopeKey].(guard.Scope); ok {
		return scope
	}
	return guard.Operate
}

// guardOperations checks the callers of the operations that are added from
// now on, and describes what is asked of them.
func guardOperations(routes huma.API, g *guard.Guard) {
	routes.UseMiddleware(permit(g), limitReads(g))
	document := routes.OpenAPI()
	document.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"basic":  {Type: "http", Scheme: "basic", Description: "The operator: every scope, for every tenant."},
		"bearer": {Type: "http", Scheme: "bearer", Description: "A token: scopes of its own, perhaps for one tenant."},
	}
	document.OnAddOperation = append(document.OnAddOperation, describeScope(g))
}

// permit lets callers pass to operations that they may use.
func permit(g *guard.Guard) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		err := g.Permit(ctx.Context(), scopeOf(ctx.Operation()))
		if err == nil && ctx.Operation().Metadata[acrossTenantsKey] != nil && guard.Tenant(ctx.Context()) != "" {
			err = guard.ErrForbidden
		}
		if err != nil {
			_, w := humachi.Unwrap(ctx)
			guard.RefuseAs(w, err, writeProblem)
			return
		}
		next(ctx)
	}
}

// limitReads counts requests that only read against the rate limit for them.
// Answers tell how the caller stands when he is refused.
func limitReads(g *guard.Guard) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Operation().Method == http.MethodGet {
			if allowance := g.Take(ctx.Context(), guard.Reads, 1); !allowance.Allowed {
				_, w := humachi.Unwrap(ctx)
				maps.Copy(w.Header(), allowance.Header)
				writeProblem(w, http.StatusTooManyRequests, allowance.Detail)
				return
			}
		}
		next(ctx)
	}
}

// describeScope documents what an operation asks of its callers.
func describeScope(g *guard.Guard) huma.AddOpFunc {
	return func(_ *huma.OpenAPI, operation *huma.Operation) {
		scope := scopeOf(operation)
		operation.Extensions = map[string]any{"x-scope": operation.Metadata[scopeKey]}
		operation.Security = []map[string][]string{{"basic": {}}, {"bearer": {}}}
		if !g.Needs(scope) {
			operation.Security = append(operation.Security, map[string][]string{})
		}
	}
}
