//go:build linux

package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// Way is how an old primary becomes the next standby.
type Way string

// The ways. Rewind falls back to BaseBackup if pg_rewind refuses.
const (
	Rewind     Way = "pg_rewind"
	BaseBackup Way = "pg_basebackup"
)

// Failover is what happens when the standby takes over.
type Failover struct {
	// Kill kills the old primary before the standby takes over; if not, it runs on until
	// Rebuild, cut off from all hosts but Stay.
	Kill bool
	// Stay names hosts whose connections stay at the old primary, and whose new ones
	// go there too, until Rejoin. A pooler leads all hosts to one server: none can stay.
	Stay []string
}

// FailOver promotes the standby. It returns when the new primary accepts writes, with
// that moment; nobody has written to it then but those who come through a network.
func (c *Cluster) FailOver(ctx context.Context, f Failover) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if f.Kill {
		if err := c.primary.Kill(); err != nil {
			return time.Time{}, err
		}
	}
	c.separate()
	if err := c.standby.Await(ctx, "select case when pg_is_in_recovery() then pg_promote(true, 8) else true end"); err != nil {
		return time.Time{}, err
	}
	if err := c.standby.Await(ctx, "select not pg_is_in_recovery()"); err != nil {
		return time.Time{}, err
	}
	if err := c.begin(ctx, c.standby, c.generation+1); err != nil {
		return time.Time{}, err
	}
	c.mu.Lock()
	c.primary, c.standby = c.standby, c.primary
	c.generation++
	c.mu.Unlock()
	answers := time.Now()
	staying := make(map[string]bool)
	for _, host := range f.Stay {
		staying[host] = true
	}
	if c.trunk != nil {
		if err := c.trunk.Lead(c.primary.URL()); err != nil {
			return answers, err
		}
		c.trunk.Cut()
	}
	for host := range c.Networks {
		if !staying[host] {
			if err := c.Rejoin(host); err != nil {
				return answers, err
			}
		}
	}
	return answers, nil
}

// begin tells the witness, if there is one, of a new primary.
func (c *Cluster) begin(ctx context.Context, primary *Server, generation int) (err error) {
	if c.witness == nil {
		return nil
	}
	var at history.LSN
	if generation > 0 {
		if at, err = primary.promotedAt(ctx); err != nil {
			return err
		}
	}
	return c.witness.Begin(ctx, primary.URL(), generation, at)
}

// Rejoin leads a host to the primary.
func (c *Cluster) Rejoin(host string) error {
	front := c.Primary().URL()
	if c.pooler != nil {
		front = c.pooler.url
	}
	network := c.Networks[host]
	err := network.Lead(front)
	network.Cut()
	return err
}

// Rebuild makes the old primary the standby, and lets commits wait for it again.
func (c *Cluster) Rebuild(ctx context.Context, way Way) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	old := c.Standby()
	if err := c.drain(ctx, old); err != nil {
		return err
	}
	old.Stop()
	return c.rebuild(ctx, old, way)
}

// drain lets the witness, if there is one, read what an old primary has committed, alone
// perhaps.
func (c *Cluster) drain(ctx context.Context, old *Server) error {
	if c.witness == nil {
		return nil
	}
	if !old.Running() {
		if err := old.Start(ctx); err != nil {
			return err
		}
	}
	if err := c.witness.Drain(ctx, old.URL(), c.generation-1); err != nil {
		return fmt.Errorf("drain the witness of server %s: %w", old.Name, err)
	}
	return nil
}

func (c *Cluster) rebuild(ctx context.Context, server *Server, way Way) error {
	primary := c.Primary()
	if err := c.Link.Lead(primary.URL()); err != nil {
		return err
	}
	c.Link.Resume()
	c.Link.Down.Store(false)
	err := errors.New("not tried")
	if way == Rewind {
		if err = c.rewind(ctx, server); err != nil {
			c.Log.Warn("pg_rewind failed", "error", err)
		}
	}
	if err != nil {
		if err := c.copyFrom(ctx, primary, server); err != nil {
			return err
		}
	}
	signal := filepath.Join(server.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o644); err != nil { //nolint:gosec // read by another user
		return err
	}
	// Where nothing had to be rewound, it would wait for a standby once it is the primary.
	if err := server.configure("synchronous_standby_names = ''"); err != nil {
		return err
	}
	if err := server.Start(ctx); err != nil {
		return err
	}
	if !c.Synchronous {
		return nil
	}
	if err := primary.Exec(ctx, "alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()"); err != nil {
		return err
	}
	if err := c.AwaitStandby(ctx); err != nil {
		return err
	}
	return c.awaitWaiting(ctx)
}

// awaitWaiting returns when commits wait for the standby, and everything that was committed
// before is there. A standby that the server lists as synchronous is not enough: it is
// the checkpointer that tells sessions to wait, perhaps a second later.
func (c *Cluster) awaitWaiting(ctx context.Context) error {
	for {
		waited, err := c.commitWaits(ctx)
		if waited && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("commits do not wait for the standby: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// commitWaits commits something while the replication is stalled, and reports whether that
// had to wait.
func (c *Cluster) commitWaits(ctx context.Context) (waited bool, err error) {
	conn, err := c.Primary().Connect(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	c.Link.Stall()
	defer c.Link.Resume()
	committed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "select pg_logical_emit_message(true, 'chaos', '')")
		committed <- err
	}()
	waits := fmt.Sprintf("select count(*) > 0 from pg_stat_activity where pid = %d and wait_event = 'SyncRep'", conn.PgConn().PID())
	for {
		select {
		case err := <-committed:
			return false, err
		case <-time.After(20 * time.Millisecond):
		}
		if waited, err = c.Primary().ask(ctx, waits); waited || err != nil {
			c.Link.Resume()
			return waited, errors.Join(err, <-committed)
		}
	}
}

// AwaitStandby waits until commits have a standby to wait for, if they do.
func (c *Cluster) AwaitStandby(ctx context.Context) error {
	if !c.Synchronous {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Primary().Await(ctx, "select count(*) > 0 from pg_stat_replication where sync_state = 'sync'")
}

func (c *Cluster) rewind(ctx context.Context, server *Server) error {
	source, err := conninfo(c.Primary().URL())
	if err != nil {
		return err
	}
	// What is in the log before the last checkpoint would not be found otherwise.
	if err := c.Primary().Exec(ctx, "checkpoint"); err != nil {
		return err
	}
	if err := server.tool(ctx, "pg_rewind", "--target-pgdata="+server.data(), "--source-server="+source); err != nil {
		return err
	}
	// The old server's slots would hold back its log for ever.
	slots, err := filepath.Glob(filepath.Join(server.data(), "pg_replslot", "*"))
	for _, slot := range slots {
		err = errors.Join(err, os.RemoveAll(slot))
	}
	return err
}

func (c *Cluster) copyFrom(ctx context.Context, primary, server *Server) error {
	if err := os.RemoveAll(server.data()); err != nil {
		return err
	}
	if os.Geteuid() == 0 { // the first copy comes before the first start
		info, err := os.Stat(primary.home)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := os.Chown(server.home, int(stat.Uid), int(stat.Gid)); err != nil {
				return err
			}
		}
	}
	source, err := conninfo(c.Link.URL)
	if err != nil {
		return err
	}
	return server.tool(ctx, "pg_basebackup", "--dbname="+source, "--pgdata="+server.data(), "--wal-method=stream", "--checkpoint=fast")
}

// separate cuts off the standby until it is rebuilt.
func (c *Cluster) separate() {
	c.Link.Down.Store(true)
	c.Link.Cut()
	c.Link.Resume()
}

// promotedAt reads where the server's timeline begins, from the last line of the
// timeline's history.
func (s *Server) promotedAt(ctx context.Context) (history.LSN, error) {
	conn, err := s.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var text string
	err = conn.QueryRow(ctx, `select pg_read_file('pg_wal/' || max(name)) from pg_ls_waldir() where name like '%.history'`).Scan(&text)
	if err != nil {
		return 0, err
	}
	var last string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 && !strings.HasPrefix(line, "#") {
			last = fields[1]
		}
	}
	return history.ParseLSN(last)
}

// conninfo is an address for programs of PostgreSQL.
func conninfo(url string) (string, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable gssencmode=disable application_name=standby",
		cfg.Host, cfg.Port, cfg.User, cfg.Database), nil
}
