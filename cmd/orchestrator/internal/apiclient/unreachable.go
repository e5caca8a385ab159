package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
)

// UnreachableError says that there was no answer, or only a part of it. The server
// may have carried out the request.
type UnreachableError struct {
	Server string
	Err    error
	// OfServer is set if --direct would not help, because the database does not have
	// the answer.
	OfServer bool
	// OfCell is set if the server is one of several.
	OfCell bool
}

// ServerError is the error of a transport that carries requests to several servers: it names
// the one that gave no answer.
type ServerError struct {
	Server string
	Err    error
}

func (e *ServerError) Error() string { return e.Server + ": " + e.Err.Error() }
func (e *ServerError) Unwrap() error { return e.Err }

// Error includes what to do about it.
func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("no answer from %s: %v", e.Server, e.Err)
	var dial *net.OpError
	switch {
	case e.OfCell:
		return text + "\n  It may have what you ask for, or a part of that. Start its orchestrators, or name only the servers that you need."
	case errors.As(e.Err, &dial) && dial.Op == "dial":
		text += "\n  Start a server with `orchestrator serve`, name another one with --server or HOLDFAST_SERVER"
		if e.OfServer {
			return text + "."
		}
		text += ",\n  or go straight to the database with --direct."
	}
	return text
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable wraps an error of the transport. If the caller's own context has ended,
// it returns the cause of that.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	unreachable := &UnreachableError{Server: c.server.String()}
	var one *ServerError
	if errors.As(err, &one) {
		unreachable.Server, unreachable.OfCell, err = one.Server, true, one.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("timed out")
	}
	unreachable.Err = err
	return unreachable
}
