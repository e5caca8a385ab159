package guard

import (
	"context"
	"errors"
	"slices"
)

// Errors of Permit.
var (
	// ErrUnknownCaller is returned when credentials are needed and there are
	// none.
	ErrUnknownCaller = errors.New("credentials are needed")
	// ErrForbidden is returned when the caller is known and may not do this.
	ErrForbidden = errors.New("the credentials do not allow this")
)

// caller is whoever has shown valid credentials.
type caller struct {
	// name tells callers apart where they are counted.
	name   string
	scopes []Scope
	// tenant is empty for a caller that may act for any.
	tenant string
}

type callerKey struct{}

// callerOf returns nil for a request without credentials.
func callerOf(ctx context.Context) *caller {
	known, _ := ctx.Value(callerKey{}).(*caller)
	return known
}

// Tenant returns the tenant that the caller is bound to; empty for a caller
// that may act for any.
func Tenant(ctx context.Context) string {
	if known := callerOf(ctx); known != nil {
		return known.tenant
	}
	return ""
}

// Needs reports whether the scope is for callers with credentials only.
func (g *Guard) Needs(scope Scope) bool {
	return g != nil && g.access != nil && (g.access.closed || scope == Operate)
}

// Permit returns nil when the request may do what the scope names. The
// context is that of a request which Admit has let through.
func (g *Guard) Permit(ctx context.Context, scope Scope) error {
	if g == nil || g.access == nil {
		return nil
	}
	known := callerOf(ctx)
	switch {
	case known == nil && g.Needs(scope):
		return ErrUnknownCaller
	case known != nil && !slices.Contains(known.scopes, scope):
		return ErrForbidden
	}
	return nil
}
