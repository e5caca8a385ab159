// Package direct lets a client of the HTTP API work straight on the database: a server
// within the process answers it, on a ledger without a worker. What it validates and
// answers is therefore the same.
package direct

import (
	"context"
	"log/slog"
	"net"
	"net/http"
)

// Serve serves the handler to the transport it returns, and to nobody else. stop ends
// the requests in progress.
func Serve(handler http.Handler, log *slog.Logger) (transport http.RoundTripper, stop func()) {
	// It needs no timeouts: they protect against slow clients on a network.
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	l := listener{dialed: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = server.Serve(l) }()
	return &http.Transport{DialContext: l.dial}, func() { _ = server.Close() }
}

// listener accepts connections from within the process.
type listener struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (l listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.dialed <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialed:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close is called once, by the server.
func (l listener) Close() error {
	close(l.closed)
	return nil
}

func (l listener) Addr() net.Addr { return &net.UnixAddr{Name: "direct", Net: "pipe"} }
