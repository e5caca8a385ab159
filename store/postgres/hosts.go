package postgres

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/singleflight"
)

// askNextAfter is how long a host of a URL may take to accept a connection before the next
// one is asked as well, and those that have refused are asked again.
const askNextAfter = 250 * time.Millisecond

// Connect opens a connection. If the URL names several hosts and says which of them to use
// (target_session_attrs), they are asked in their order: the next one when the one before
// has refused, or has not answered within askNextAfter. While one does not answer, those
// that have refused are asked again: a standby may have become the primary. The first that
// accepts is used.
//
// The driver asks one after the other. Each new connection would then wait for
// ConnectTimeout while the first host hangs, or is gone without a trace.
func Connect(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	hosts := hostsOf(cfg)
	if !choosesAmong(cfg, hosts) {
		return pgx.ConnectConfig(ctx, cfg)
	}
	ctx, stop := context.WithTimeout(ctx, cmp.Or(cfg.ConnectTimeout, ConnectTimeout))
	q := &inquiry{ctx: ctx, answers: make(chan answer, len(hosts)), refusals: make([]error, len(hosts)), open: make([]bool, len(hosts))}
	defer q.end(stop)
	tick := time.NewTicker(askNextAfter)
	defer tick.Stop()
	for next := 0; ; {
		if next < len(hosts) {
			q.ask(next, hosts[next])
			next++
		}
		select {
		case <-tick.C:
			for i := range next {
				if !q.open[i] && next == len(hosts) && ctx.Err() == nil {
					q.ask(i, hosts[i])
				}
			}
		case got := <-q.answers:
			if got.err == nil {
				return got.conn, nil
			}
			q.refusals[got.host], q.open[got.host] = got.err, false
			if next == len(hosts) && !slices.Contains(q.open, true) {
				return nil, errors.Join(q.refusals...)
			}
		}
	}
}

// inquiry asks hosts for a connection. Each is asked once at a time.
type inquiry struct {
	ctx      context.Context
	asked    sync.WaitGroup
	answers  chan answer // with room for one of each host
	refusals []error     // the last ones, by host
	open     []bool      // whether the host has yet to answer
}

type answer struct {
	host int
	conn *pgx.Conn
	err  error
}

func (q *inquiry) ask(host int, cfg *pgx.ConnConfig) {
	q.open[host] = true
	q.asked.Go(func() {
		conn, err := pgx.ConnectConfig(q.ctx, cfg)
		q.answers <- answer{host, conn, err}
	})
}

// end gives up those that have not answered.
func (q *inquiry) end(stop context.CancelFunc) {
	stop()
	q.asked.Wait()
	close(q.answers)
	for late := range q.answers {
		if late.err == nil {
			_ = late.conn.Close(q.ctx)
		}
	}
}

// Choose changes a configuration so that it leads to the host that Connect finds. It is for
// pools, whose connections are few and live long, so that choosing may cost one more.
func Choose(ctx context.Context, cfg *pgx.ConnConfig) error {
	found, err := choice(ctx, cfg)
	if err == nil {
		lead(cfg, found)
	}
	return err
}

// choice returns the configuration of the host that Connect finds; nil if there is no choice.
func choice(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.ConnConfig, error) {
	if !choosesAmong(cfg, hostsOf(cfg)) {
		return nil, nil //nolint:nilnil // see above
	}
	conn, err := Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	found := conn.Config()
	_ = conn.Close(ctx) // it did what it was for
	return found, nil
}

// chooser makes the connections that pools open at the same time choose a host together.
type chooser struct{ asking singleflight.Group }

func (c *chooser) choose(ctx context.Context, cfg *pgx.ConnConfig) error {
	found, err, _ := c.asking.Do("", func() (any, error) { return choice(ctx, cfg.Copy()) })
	if err != nil {
		return err
	}
	lead(cfg, found.(*pgx.ConnConfig)) //nolint:forcetypeassert // what choice returned
	return nil
}

// lead makes cfg lead to the host that was found, if there was a choice.
func lead(cfg, found *pgx.ConnConfig) {
	if found != nil {
		cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = found.Host, found.Port, found.TLSConfig, found.Fallbacks
	}
}

// choosesAmong reports whether connections look for one of the hosts. Otherwise the first one
// that answers is used, whatever it is.
func choosesAmong(cfg *pgx.ConnConfig, hosts []*pgx.ConnConfig) bool {
	return len(hosts) > 1 && cfg.ValidateConnect != nil
}

// hostsOf returns a configuration for each host and port of another one, in their order. A
// host may have several ways to connect, with TLS and without.
func hostsOf(cfg *pgx.ConnConfig) []*pgx.ConnConfig {
	ways := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	var hosts []*pgx.ConnConfig
	byAddress := make(map[string]*pgx.ConnConfig)
	for _, way := range ways {
		host := cfg.Copy()
		host.Host, host.Port, host.TLSConfig, host.Fallbacks = way.Host, way.Port, way.TLSConfig, nil
		if known := byAddress[address(host)]; known != nil {
			known.Fallbacks = append(known.Fallbacks, way)
			continue
		}
		byAddress[address(host)] = host
		hosts = append(hosts, host)
	}
	return hosts
}

func address(cfg *pgx.ConnConfig) string {
	return net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
}
