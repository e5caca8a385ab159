//go:build linux

// Package database is the database of a chaos run, or of another test that fails over
// again and again: a primary and a synchronous standby, the networks of the hosts that lead
// to the primary, and perhaps a pooler before it. The standby can take over at any time,
// and the old primary is rebuilt as the next standby.
//
//	orchestrators of a host ─▶ network of the host ─▶ [pooler ─▶ trunk ─▶] primary ◀─ link ◀─ standby
//
// All networks are proxies on the loopback.
package database

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/pgproxy"
)

// patience bounds every wait for a server that is healthy.
const patience = 8 * time.Minute

// roleSettings are those of the product's sessions, which a pooler does not pass on.
var roleSettings = map[string]string{
	"statement_timeout": "15s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s", "client_min_messages": "warning",
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off",
	"enable_mergejoin": "off", "enable_hashagg": "off", "enable_memoize": "off", "jit": "off", "max_parallel_workers_per_gather": "0",
}

// Config says what a cluster is like.
type Config struct {
	// Dir is an empty directory that the servers' user can enter.
	Dir string
	// Orchestrator is the program that makes the schema: its own, whatever that is.
	Orchestrator string
	// Synchronous makes commits wait for the standby.
	Synchronous bool
	// Disks gives each server a small file system of its own, which can fill up, if this
	// machine permits it.
	Disks bool
	// Pooler puts PgBouncer before the primary.
	Pooler bool
	// Hosts name the networks. Without any, programs reach the servers themselves, with
	// MultiHostURL.
	Hosts []string
	Log   *slog.Logger
}

// Witness is told of every new primary before anything can write to it.
type Witness interface {
	// Begin starts a generation, whose timeline begins at the position.
	Begin(ctx context.Context, url string, generation int, at history.LSN) error
	// Drain reads what is left of an earlier generation.
	Drain(ctx context.Context, url string, generation int) error
}

// Cluster is the two servers and what leads to them. Only one goroutine may change
// roles.
type Cluster struct {
	Config
	// Link leads from the standby to the primary, and Networks from each host to the
	// database.
	Link     *pgproxy.Proxy
	Networks map[string]*pgproxy.Proxy

	witness Witness
	trunk   *pgproxy.Proxy // from the pooler to the primary; nil without a pooler
	pooler  *pooler

	mu               sync.Mutex
	generation       int
	primary, standby *Server
	undo             []func()
}

// Start starts the servers with the product's schema, and all networks. The witness may be
// nil.
func Start(ctx context.Context, cfg Config, witness Witness) (c *Cluster, err error) {
	c = &Cluster{Config: cfg, witness: witness, Networks: make(map[string]*pgproxy.Proxy)}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	settings := map[string]string{
		"synchronous_commit": "on", "wal_level": "logical", "wal_log_hints": "on", "wal_keep_size": "256MB",
		"max_wal_size": "512MB", "shared_buffers": "64MB", "max_connections": "200", "max_replication_slots": "10",
		// Servers that are killed must leave nothing in /dev/shm.
		"dynamic_shared_memory_type": "mmap",
		// A stalled link must not be dropped.
		"wal_sender_timeout": "0", "wal_receiver_timeout": "0", "log_checkpoints": "off",
	}
	c.primary = &Server{Name: "one", home: filepath.Join(cfg.Dir, "one"), settings: maps.Clone(settings), log: cfg.Log.With("server", "one")}
	c.standby = &Server{Name: "two", home: filepath.Join(cfg.Dir, "two"), settings: maps.Clone(settings), log: cfg.Log.With("server", "two")}
	for _, server := range []*Server{c.primary, c.standby} {
		if err := c.mount(server.home); err != nil {
			return c, err
		}
	}
	if err := c.primary.Start(ctx); err != nil {
		return c, err
	}
	c.undo = append(c.undo, func() { c.primary.Stop(); c.standby.Stop() })
	if err := c.migrate(ctx); err != nil {
		return c, err
	}
	if c.Link, err = c.listen(ctx, c.primary.URL()); err != nil {
		return c, err
	}
	cfgs, err := conninfo(c.Link.URL)
	if err != nil {
		return c, err
	}
	c.primary.settings["primary_conninfo"], c.standby.settings["primary_conninfo"] = cfgs, cfgs
	if err := c.begin(ctx, c.primary, 0); err != nil {
		return c, err
	}
	if err := c.rebuild(ctx, c.standby, BaseBackup); err != nil {
		return c, err
	}
	return c, c.openNetworks(ctx)
}

// mount makes the directory of a server. A file system of its own is in memory, and only root
// can make it.
func (c *Cluster) mount(home string) error {
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	size := diskSize()
	if !c.Disks || os.Geteuid() != 0 || size == "" {
		return nil
	}
	if err := syscall.Mount("holdfast-chaos", home, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		c.Log.Warn("no file system of its own", "error", err)
		return nil //nolint:nilerr // the fault that needs it says so
	}
	c.undo = append(c.undo, func() { _ = syscall.Unmount(home, syscall.MNT_DETACH) })
	return nil
}

func (c *Cluster) migrate(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.Orchestrator, "migrate", "up", "--set", "database.url="+c.primary.URL()) //nolint:gosec // the program under test
	// There is no configuration file.
	cmd.Dir = c.Dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("migrate: %w: %s", err, said)
	}
	if !c.Pooler {
		return nil
	}
	var settings []string
	for name, value := range roleSettings {
		settings = append(settings, fmt.Sprintf("alter role holdfast set %s = '%s'", name, value))
	}
	return c.primary.Exec(ctx, settings...)
}

func (c *Cluster) listen(ctx context.Context, url string) (*pgproxy.Proxy, error) {
	proxy, err := pgproxy.Listen(ctx, url)
	if err == nil {
		c.undo = append(c.undo, proxy.Close)
	}
	return proxy, err
}

func (c *Cluster) openNetworks(ctx context.Context) (err error) {
	front := c.primary.URL()
	if c.Pooler {
		if c.trunk, err = c.listen(ctx, front); err != nil {
			return err
		}
		if c.pooler, err = startPooler(ctx, c.Dir, c.trunk.URL, c.Log); err != nil {
			return err
		}
		c.undo = append(c.undo, c.pooler.stop)
		front = c.pooler.url
	}
	for _, host := range c.Hosts {
		if c.Networks[host], err = c.listen(ctx, front); err != nil {
			return err
		}
	}
	return nil
}

// Primary is the server that new connections reach.
func (c *Cluster) Primary() *Server { c.mu.Lock(); defer c.mu.Unlock(); return c.primary }

// Standby is the other server.
func (c *Cluster) Standby() *Server { c.mu.Lock(); defer c.mu.Unlock(); return c.standby }

// Generation counts primaries, from 0.
func (c *Cluster) Generation() int { c.mu.Lock(); defer c.mu.Unlock(); return c.generation }

// URL leads to the primary from a host, whatever server that is.
func (c *Cluster) URL(host string) string { return c.Networks[host].URL }

// PoolerClients counts the connections that clients of the pooler have.
func (c *Cluster) PoolerClients(ctx context.Context) (int, error) { return c.pooler.clients(ctx) }

// MultiHostURL leads to whichever of the two servers takes writes, without any network.
func (c *Cluster) MultiHostURL() (string, error) {
	one, err := pgx.ParseConfig(c.Primary().URL())
	if err != nil {
		return "", err
	}
	two, err := pgx.ParseConfig(c.Standby().URL())
	if err != nil {
		return "", err
	}
	query := url.Values{
		"host": {one.Host + "," + two.Host}, "port": {fmt.Sprintf("%d,%d", one.Port, two.Port)},
		"sslmode": {"disable"}, "target_session_attrs": {"read-write"},
	}
	return "postgres://" + one.User + "@/" + one.Database + "?" + query.Encode(), nil
}

// PoolerPID is the process id of the pooler, or of its last one if it was started again; 0
// without one.
func (c *Cluster) PoolerPID() int {
	if c.pooler == nil {
		return 0
	}
	return int(c.pooler.pid.Load())
}

// Close ends everything.
func (c *Cluster) Close() {
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.undo[i]()
	}
	c.undo = nil
}
