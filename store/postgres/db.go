// Package postgres runs the store's statements. It divides the connections
// among pools, never cancels a write, limits how many reads run at once, and
// translates the driver's errors into those of package job.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Config says how to reach the database.
type Config struct {
	// URL is a PostgreSQL connection URL or keyword string.
	URL string
	// DirectURL leads past the pooler that URL leads through. It is empty if there is none.
	// A pooler gives each transaction another session, so the sessions' settings must be
	// the role's: see SetDefaults.
	DirectURL string
	// MaxConnections limits the connections for everything but heartbeats; less
	// than 3 counts as 3. The pools share them. Heartbeats have
	// heartbeatConnections of their own on top, and one more connection listens
	// for hints.
	MaxConnections int32
	// Replica says where reads may go that may be a little old.
	Replica ReplicaConfig
	// Cell is the cell that the database is, if any.
	Cell job.Cell
	// Tracer records a span for each statement that runs within a span. It may
	// be nil.
	Tracer trace.Tracer
}

const (
	// leastConnections is one for each pool that shares MaxConnections.
	leastConnections     = 3
	heartbeatConnections = 2
	// leastOfReplica is one for each lane of the replica, and one to look at it.
	leastOfReplica = 3
)

// ConnectTimeout limits one attempt to open a connection to one host.
const ConnectTimeout = 5 * time.Second

// DB holds the connections to one database. It is safe for concurrent use.
//
// Each kind of work has its own pool, so that none waits behind another.
type DB struct {
	Worker      *Pool // claims, settlements and everything else that the worker's loops do
	Submissions *Pool // submissions and what operators change
	Reads       *Pool // behind the lanes, and for diagnoses
	Heartbeats  *Pool

	// The lanes share Reads: for single jobs, for lists, and for figures.
	Lookups, Lists, Figures *Lane

	// StaleLists and StaleFigures lead to the replica, if there is one. What must be current does
	// not go there: what is named by its id, what was just written, and all that decides.
	StaleLists, StaleFigures *StaleLane
	// Replica is nil if there is none.
	Replica *Replica

	hosts      chooser
	doubted    doubtedWrites
	reconnects broadcast
	pooled     bool   // whether URLs lead through a pooler
	direct     string // the URL that leads through none
}

// Pool is the connections for one kind of work.
type Pool struct {
	*pgxpool.Pool
	// Settings are what its sessions must have.
	Settings map[string]string

	name string
	db   *DB
}

// Open connects to the database and checks that it answers.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	db := &DB{direct: cmp.Or(cfg.DirectURL, cfg.URL), pooled: cfg.DirectURL != ""}
	worker, submissions, reads := divide(cfg.MaxConnections)
	for _, p := range []struct {
		pool **Pool
		poolConfig
	}{
		{&db.Worker, poolConfig{"worker", worker, sessionSettings, cfg.Tracer}},
		{&db.Submissions, poolConfig{"submission", submissions, sessionSettings, cfg.Tracer}},
		{&db.Reads, poolConfig{"read", reads, readSettings(), cfg.Tracer}},
		{&db.Heartbeats, poolConfig{"heartbeat", heartbeatConnections, sessionSettings, nil}},
	} {
		if db.pooled {
			p.settings = sessionSettings // all sessions have the role's
		}
		pool, err := db.openPool(ctx, cfg.URL, p.poolConfig, db.hosts.choose)
		if err != nil {
			db.Close()
			return nil, err
		}
		*p.pool = pool
	}
	db.Lookups, db.Lists, db.Figures = lanes(db.Reads, reads)
	if err := db.openReplica(ctx, cfg, max(reads, leastOfReplica)); err != nil {
		db.Close()
		return nil, err
	}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// openReplica connects to nothing yet. Without a replica, what may be stale is read from the
// primary.
func (db *DB) openReplica(ctx context.Context, cfg Config, connections int32) error {
	db.StaleLists, db.StaleFigures = &StaleLane{primary: db.Lists}, &StaleLane{primary: db.Figures}
	if cfg.Replica.URL == "" {
		return nil
	}
	// The driver knows how to prefer a standby, and nothing depends on how soon it finds one.
	pool, err := db.openPool(ctx, cfg.Replica.URL, poolConfig{"replica", connections, db.Reads.Settings, cfg.Tracer}, nil)
	if err != nil {
		return fmt.Errorf("replica: %w", err)
	}
	db.Replica = newReplica(pool, db.Worker, cfg.Replica)
	db.StaleLists.replica, db.StaleFigures.replica = db.Replica, db.Replica
	db.StaleLists.lane, db.StaleFigures.lane = staleLanes(pool, connections)
	return nil
}

// divide shares out the connections: three tenths each for submissions and
// reads, at least one, and the rest for the worker, which has the most loops.
func divide(connections int32) (worker, submissions, reads int32) {
	connections = max(connections, leastConnections)
	share := max(connections*3/10, 1)
	return connections - 2*share, share, share
}

// poolConfig says what the connections of a pool are like.
type poolConfig struct {
	name        string
	connections int32
	settings    map[string]string
	tracer      trace.Tracer // may be nil
}

// openPool opens a pool whose connections lead to the host that choose finds; if it is nil, to
// the driver's choice.
func (db *DB) openPool(ctx context.Context, url string, p poolConfig, choose func(context.Context, *pgx.ConnConfig) error) (*Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	cfg.MaxConns = p.connections
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.ShouldPing = mustPing
	cfg.ConnConfig.ConnectTimeout = ConnectTimeout
	cfg.BeforeConnect = func(ctx context.Context, cfg *pgx.ConnConfig) error {
		if choose != nil {
			if err := choose(ctx, cfg); err != nil {
				return err
			}
		}
		return newSession(ctx, cfg)
	}
	if p.tracer != nil {
		cfg.ConnConfig.Tracer = queries{p.tracer}
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if db.pooled {
		setUp(cfg.ConnConfig, pooledSettings(), "holdfast")
	} else {
		setUp(cfg.ConnConfig, p.settings, "holdfast "+p.name)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return &Pool{Pool: pool, Settings: p.settings, name: p.name, db: db}, nil
}

// Ping reports whether the database answers submissions. If not, the error is
// job.ErrUnavailable.
func (db *DB) Ping(ctx context.Context) error {
	return Translate("ping", db.Submissions.Ping(ctx))
}

func (db *DB) pools() []*Pool {
	all := []*Pool{db.Worker, db.Submissions, db.Reads, db.Heartbeats}
	if db.Replica != nil {
		all = append(all, db.Replica.pool)
	}
	return all
}

// reconnect replaces every connection before its next use. Writes that are under way are
// doubted; but behind a pooler, nobody can tell which of them the server works on.
func (db *DB) reconnect() {
	for _, pool := range db.pools() {
		pool.Reset()
	}
	if !db.pooled {
		db.reconnects.raise()
	}
}

// Close closes every connection. Nothing may be called afterwards. The server
// finishes the writes that it is still working on.
func (db *DB) Close() {
	db.doubted.close()
	if db.Replica != nil {
		db.Replica.close()
	}
	for _, pool := range db.pools() {
		if pool != nil { // Open may fail halfway
			pool.Close()
		}
	}
}

// PoolStats says how a pool of connections is used.
type PoolStats struct {
	// Name is "worker", "submission", "read", "heartbeat" or "replica".
	Name string
	// Acquired are in use, Idle are open and free, and Opening are being
	// opened. Together they are at most Max.
	Acquired int
	Idle     int
	Opening  int
	Max      int
	// Acquires counts how often a connection was taken, ever. Waits counts how
	// often none was free, and Waited is the total time spent waiting.
	Acquires int64
	Waits    int64
	Waited   time.Duration
}

// Stats says how the pools are used. It does not query the database.
func (db *DB) Stats() []PoolStats {
	var all []PoolStats
	for _, pool := range db.pools() {
		now := pool.Stat()
		all = append(all, PoolStats{
			Name:     pool.name,
			Acquired: int(now.AcquiredConns()), Idle: int(now.IdleConns()),
			Opening: int(now.ConstructingConns()), Max: int(now.MaxConns()),
			Acquires: now.AcquireCount(), Waits: now.EmptyAcquireCount(), Waited: now.EmptyAcquireWaitTime(),
		})
	}
	return all
}
