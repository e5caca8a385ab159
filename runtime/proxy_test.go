package runtime_test

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// proxy is the network between a store and its server, and what can go wrong
// in it.
type proxy struct {
	url      string
	listener net.Listener
	network  string // of the server
	address  string
	all      sync.WaitGroup

	mute    atomic.Bool  // swallow what the server answers
	down    atomic.Bool  // refuse new connections
	refused atomic.Int32 // connections so far

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// between returns a proxy in front of the database.
func between(t testing.TB, database string) *proxy {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	p := &proxy{conns: make(map[net.Conn]struct{})}
	p.network, p.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	p.listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password),
		Host: p.listener.Addr().String(), Path: cfg.Database, RawQuery: "sslmode=disable",
	}
	p.url = u.String()
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.down.Load() {
			p.refused.Add(1)
			_ = client.Close()
			continue
		}
		server, err := net.Dial(p.network, p.address)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.all.Go(func() { p.forward(client, server, nil) })
		p.all.Go(func() { p.forward(server, client, &p.mute) })
	}
}

// forward copies until either side ends, and then ends both.
func (p *proxy) forward(from, to net.Conn, mute *atomic.Bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && (mute == nil || !mute.Load()) {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
	delete(p.conns, to)
}

// cut ends every connection there is.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}
