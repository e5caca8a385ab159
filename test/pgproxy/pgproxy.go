// Package pgproxy is a network between programs and a PostgreSQL server that breaks on
// demand. It understands enough of the protocol to lose the answer to a commit.
package pgproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy is the network between a program and its database, with faults that can be
// injected at any time.
type Proxy struct {
	// URL leads to the database through the proxy.
	URL string

	// LoseAnswers is how many of the next commands the server completes without their
	// answers reaching the client. Each lost answer also breaks its connection.
	LoseAnswers atomic.Int32
	// LoseCommits is the same for answers to COMMIT only.
	LoseCommits atomic.Int32
	// LoseRequests is how many of the next requests do not reach the server. Each lost
	// request also breaks its connection.
	LoseRequests atomic.Int32
	// SpareAnswers and SpareRequests are how many pass before LoseAnswers and LoseRequests
	// begin to count.
	SpareAnswers, SpareRequests atomic.Int32
	// Mute drops the server's answers, and keeps the connections open.
	Mute atomic.Bool
	// Down refuses new connections, and Refused counts them.
	Down    atomic.Bool
	Refused atomic.Int32

	listener net.Listener

	all     sync.WaitGroup
	mu      sync.Mutex
	network string // of the server
	address string
	conns   map[net.Conn]struct{}
	stalled chan struct{} // closed by Resume; nil when answers flow
}

// Listen returns a proxy on the loopback, in front of the database, until Close.
func Listen(ctx context.Context, database string) (*Proxy, error) {
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	p := &Proxy{conns: make(map[net.Conn]struct{})}
	p.network, p.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	if p.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password),
		Host: p.listener.Addr().String(), Path: cfg.Database, RawQuery: "sslmode=disable",
	}
	p.URL = u.String()
	p.all.Go(p.accept)
	return p, nil
}

// Close ends all connections and returns when nothing is left.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Cut()
	p.Resume()
	p.all.Wait()
}

// Lead sends new connections to the server of another database address. Open
// connections stay where they are.
func (p *Proxy) Lead(database string) error {
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.network, p.address = pgconn.NetworkAddress(cfg.Host, cfg.Port)
	return nil
}

// Stall holds back the server's answers until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// Resume forwards what Stall has held back.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

// awaitFlow returns when no answers are held back.
func (p *Proxy) awaitFlow() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.Down.Load() {
			p.Refused.Add(1)
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		network, address := p.network, p.address
		p.mu.Unlock()
		server, err := net.Dial(network, address) //nolint:noctx // ends with the listener
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.all.Go(func() { p.end(p.requests(client, server), client, server) })
		p.all.Go(func() { p.end(p.answers(server, client), client, server) })
	}
}

// requests forwards the client's messages.
func (p *Proxy) requests(client io.Reader, server io.Writer) error {
	buffer := make([]byte, 64<<10)
	started := false
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return err
		}
		if started && takeAfter(&p.SpareRequests, &p.LoseRequests) {
			return errors.New("request lost")
		}
		started = true
		if _, err := server.Write(buffer[:n]); err != nil {
			return err
		}
	}
}

// answers forwards the server's messages one by one. It holds back an answer to lose
// until the server is ready for the next query: by then, the effect of the command is
// committed.
func (p *Proxy) answers(server io.Reader, client io.Writer) error {
	const commandComplete, readyForQuery = 'C', 'Z'
	var answer []byte
	completed, losing := false, false
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
		committed := header[0] == commandComplete && string(body) == "COMMIT\x00"
		losing = losing || committed && take(&p.LoseCommits)
		if header[0] == readyForQuery && (losing || completed && takeAfter(&p.SpareAnswers, &p.LoseAnswers)) {
			return errors.New("answer lost")
		}
		if (losing || p.LoseAnswers.Load() > 0) && header[0] != readyForQuery {
			continue
		}
		if header[0] == readyForQuery {
			completed = false
		}
		p.awaitFlow()
		if !p.Mute.Load() {
			if _, err := client.Write(answer); err != nil {
				return err
			}
		}
		answer = answer[:0]
	}
}

func (p *Proxy) end(_ error, conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

// Cut closes every open connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// takeAfter is take for a counter that waits until the spared ones have passed.
func takeAfter(spare, left *atomic.Int32) bool {
	return left.Load() > 0 && !take(spare) && take(left)
}

// take decrements the counter, and reports whether it was positive.
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
