package guard

import (
	"context"
	"errors"
	"slices"
)

// Errors of Permit.
var (
	// ErrUnknownCaller says that credentials are needed and missing.
	ErrUnknownCaller = errors.New("credentials are needed")
	// ErrForbidden says that the caller is known and may not do this.
	ErrForbidden = errors.New("the credentials do not allow this")
)

// Scope is a kind of operation that a caller may use.
type Scope string

// The scopes. None includes another.
const (
	// Submit makes jobs, and cancels, holds and releases them.
	Submit Scope = "submit"
	// Read shows jobs as clients see them.
	Read Scope = "read"
	// Operate is everything else: dead letters, metrics, and /debug.
	Operate Scope = "operate"
)

// Scopes lists all scopes.
func Scopes() []Scope { return []Scope{Submit, Read, Operate} }

// caller is somebody with valid credentials.
type caller struct {
	// name identifies the caller in rate limits, in logs, and to other operators.
	name   string
	scopes []Scope
	// tenant is the one that the caller is bound to; empty for none.
	tenant string
}

type callerKey struct{}

// callerOf returns nil for a request without credentials.
func callerOf(ctx context.Context) *caller {
	known, _ := ctx.Value(callerKey{}).(*caller)
	return known
}

// Tenant returns the tenant that the caller is bound to; empty if it may act for
// any.
func Tenant(ctx context.Context) string {
	if known := callerOf(ctx); known != nil {
		return known.tenant
	}
	return ""
}

// Name says who the caller is, for logs and other operators: the user, or a token by its name;
// empty for a caller without credentials.
func Name(ctx context.Context) string {
	if known := callerOf(ctx); known != nil {
		return known.name
	}
	return ""
}

// Needs reports whether the scope always needs credentials.
func (g *Guard) Needs(scope Scope) bool {
	return g != nil && g.access != nil && (g.access.closed || scope == Operate)
}

// Permit returns nil if the caller has the scope. The context must be that of a
// request that passed Admit.
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
