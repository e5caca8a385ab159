package api

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// scopeKey is where an operation's metadata says what its caller must be
// allowed to do.
const scopeKey = "scope"

// scoped says what the callers of an operation must be allowed to do.
func scoped(scope guard.Scope, operation huma.Operation) huma.Operation {
	operation.Metadata = map[string]any{scopeKey: scope}
	return operation
}
