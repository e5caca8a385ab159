package guard

import (
	"context"
	"errors"
	"fmt"
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

// The scopes.
const (
	// Submit makes jobs, and cancels, holds and releases them.
	Submit Scope = "submit"
	// Read shows jobs as clients see them.
	Read Scope = "read"
	// Observe shows what operators see: dead letters, metrics, and /debug. It changes
	// nothing.
	Observe Scope = "observe"
	// Operate acts: it requeues and edits jobs, sets limits and pauses, swaps plugins. It
	// includes Observe.
	Operate Scope = "operate"
	// Payloads shows what clients and handlers put into jobs: payloads, progress,
	// checkpoints, results and logs. A caller without Observe in its list has it.
	Payloads Scope = "payloads"
)

// Scopes lists all scopes.
func Scopes() []Scope { return []Scope{Submit, Read, Observe, Operate, Payloads} }

// granted returns all scopes of a caller with a list of scopes. Lists from before there
// was Observe keep what they allowed: Operate showed everything, payloads included, and
// clients saw the results of their jobs.
func granted(listed []Scope) []Scope {
	all := slices.Clone(listed)
	if slices.Contains(listed, Observe) {
		return all
	}
	if slices.Contains(listed, Operate) {
		all = append(all, Observe)
	}
	return append(all, Payloads)
}

// caller is somebody with valid credentials.
type caller struct {
	// name identifies the caller in rate limits, in logs, and to other operators.
	name   string
	scopes []Scope
	// tenant is the one that the caller is bound to; empty for none.
	tenant string
	// credential is the digest of the password or of the token.
	credential Digest
}

type callerKey struct{}

// callerOf returns nil for a request without credentials.
func callerOf(ctx context.Context) *caller {
	known, _ := ctx.Value(callerKey{}).(*caller)
	return known
}

// personKey marks the requests of people, which came to a page of the UI. Its value says
// whether they have a session.
type personKey struct{}

// IsPerson reports whether somebody does this on a page of the UI.
func IsPerson(ctx context.Context) bool { return ctx.Value(personKey{}) != nil }

// HasSession reports whether the caller has logged in with a browser.
func HasSession(ctx context.Context) bool {
	has, _ := ctx.Value(personKey{}).(bool)
	return has
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

// SeesPayloads reports whether the caller has the scope Payloads. A caller whom Admit lets
// in without credentials has it.
func SeesPayloads(ctx context.Context) bool {
	known := callerOf(ctx)
	return known == nil || slices.Contains(known.scopes, Payloads)
}

// IsOpen reports whether clients on this machine may have the scope without credentials,
// if the guard is not closed.
func (s Scope) IsOpen() bool { return s == Submit || s == Read }

// Needs reports whether the scope always needs credentials.
func (g *Guard) Needs(scope Scope) bool {
	return g != nil && g.access != nil && (g.access.closed || !scope.IsOpen())
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
		return fmt.Errorf("%w: it needs the scope %s", ErrForbidden, scope)
	}
	return nil
}

// PermitAllTenants returns nil if the caller is bound to no tenant.
func PermitAllTenants(ctx context.Context) error {
	if Tenant(ctx) != "" {
		return fmt.Errorf("%w: it concerns all tenants, and they are for one", ErrForbidden)
	}
	return nil
}
