package store

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// proxy stands between a store and its server and cuts connections at the
// moments that matter.
type proxy struct {
	url      string
	listener net.Listener
	network  string // of the server
	address  string

	loseAnswers  atomic.Int32 // how many more answers to a command to swallow
	loseRequests atomic.Int32 // how many more requests to swallow
	refuse       atomic.Bool  // new connections

	all   sync.WaitGroup
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
		p.cutAll()
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
		if p.refuse.Load() {
			_ = client.Close()
			continue
		}
		server, err := net.Dial(p.network, p.address) //nolint:noctx // ends with the listener
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.all.Go(func() { p.cut(p.requests(client, server), client, server) })
		p.all.Go(func() { p.cut(p.answers(server, client), client, server) })
	}
}

// requests forwards what the client sends.
func (p *proxy) requests(client io.Reader, server io.Writer) error {
	buffer := make([]byte, 64<<10)
	started := false
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return err
		}
		if started && take(&p.loseRequests) {
			return fmt.Errorf("request lost")
		}
		started = true
		if _, err := server.Write(buffer[:n]); err != nil {
			return err
		}
	}
}

// answers forwards what the server sends, message by message. An answer that
// is to be lost is held back until the server is ready for the next query:
// whatever the command did is committed by then.
func (p *proxy) answers(server io.Reader, client io.Writer) error {
	const commandComplete, readyForQuery = 'C', 'Z'
	var answer []byte
	completed := false
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(server, header); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return err
		}
		answer = append(append(answer, header...), body...)
		completed = completed || header[0] == commandComplete
		if header[0] == readyForQuery && completed && take(&p.loseAnswers) {
			return fmt.Errorf("answer lost")
		}
		if p.loseAnswers.Load() > 0 && header[0] != readyForQuery {
			continue
		}
		if header[0] == readyForQuery {
			completed = false
		}
		if _, err := client.Write(answer); err != nil {
			return err
		}
		answer = answer[:0]
	}
}

func (p *proxy) cut(_ error, conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// take counts one down and reports whether there was one.
func take(left *atomic.Int32) bool {
	for {
		n := left.Load()
		if n <= 0 {
			return false
		}
		if left.CompareAndSwap(n, n-1) {
			return true
		}
	}
}
