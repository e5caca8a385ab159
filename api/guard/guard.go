// Package guard decides who may call the API, for which tenant, and how often.
package guard

import (
	"context"
	"net/http"
)

// Scope is what a caller may do.
type Scope string

// The scopes. Whoever may operate may also read what is not a client's.
const (
	Submit  Scope = "submit"
	Read    Scope = "read"
	Operate Scope = "operate"
)

// Limit names one of the rate limits.
type Limit string

// The limits: submitted jobs, and requests that requeue dead jobs.
const (
	Jobs    Limit = "jobs"
	Requeue Limit = "requeue"
)

// Guard holds the credentials and the counters. A nil Guard lets everybody
// do everything.
type Guard struct{}

// Allowance is the answer of a rate limit.
type Allowance struct {
	Allowed bool
	// Header holds what every counted answer tells the client, and
	// Retry-After when it was not allowed.
	Header http.Header
}

// Take counts n against the caller's limit.
func (g *Guard) Take(context.Context, Limit, int) Allowance { return Allowance{Allowed: true} }

// Tenant returns the tenant that the caller is bound to; empty for a caller
// that may act for any.
func Tenant(context.Context) string { return "" }
