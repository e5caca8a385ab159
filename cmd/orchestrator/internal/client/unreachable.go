package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
)

// UnreachableError says that there was no answer, or not all of it. A request
// that it ended may have been carried out.
type UnreachableError struct {
	Server string
	Err    error
	// OfServer is set when the database would not have the answer.
	OfServer bool
}

// Error says what can be done about it.
func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("no answer from %s: %v", e.Server, e.Err)
	var dial *net.OpError
	if errors.As(e.Err, &dial) && dial.Op == "dial" {
		text += "\n  Start a server with `orchestrator serve`, name another one with --server or HOLDFAST_SERVER"
		if e.OfServer {
			return text + "."
		}
		text += ",\n  or go straight to the database with --direct."
	}
	return text
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// unreachable wraps an error of the transport. When the caller's own context
// has ended, that is the error.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("it took too long")
	}
	return &UnreachableError{Server: c.server.String(), Err: err}
}
