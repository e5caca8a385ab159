package store

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
)

// Config says how to reach the database.
type Config struct {
	// URL is a PostgreSQL connection URL or keyword string.
	URL string
	// MaxConnections bounds the connections of everything but heartbeats; less
	// than 3 counts as 3. They are divided among the pools. Heartbeats have
	// heartbeatConnections of their own on top, and one more connection listens
	// for hints.
	MaxConnections int32
	// Tracer makes spans of the statements that are run within a span; nil for
	// none.
	Tracer trace.Tracer
}

const heartbeatConnections = 2

// ConnectTimeout bounds one attempt to open a connection.
const ConnectTimeout = 5 * time.Second

// sessionSettings hold for every connection of the queue. Timeouts make sure
// that no statement waits for ever. The planner settings pin the plans: every
// statement walks the index that its header names. A planner left to itself
// falls for cold or skewed statistics (measured elsewhere at 60 times the
// cost of a settle), and a generic plan is then as good as a custom one and
// saves the planning.
var sessionSettings = map[string]string{
	"timezone":                            "UTC",
	"statement_timeout":                   "15s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "30s",
	"plan_cache_mode":                     "force_generic_plan",
	"client_min_messages":                 "warning", // one tells of a commit that did not wait for its standby
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_hashagg":                      "off",
	"enable_memoize":                      "off",
	"jit":                                 "off",
}

// readSettings are those of sessions that read: what takes longer than
// readTimeout is given up.
func readSettings() map[string]string {
	settings := maps.Clone(sessionSettings)
	settings["statement_timeout"] = readTimeout.String()
	return settings
}

// Store is the job ledger in PostgreSQL. It is safe for concurrent use.
//
// Each verb takes its connections from one pool, whatever it calls, so that
// nobody waits behind those of another kind.
type Store struct {
	worker      *pgxpool.Pool // claims, settles and all else that the worker's loops do
	submissions *pgxpool.Pool // submits, and the changes that operators ask for
	reads       *pgxpool.Pool // gets, lists and figures
	heartbeats  *pgxpool.Pool

	// The lanes of reads: of one job, of many, and of what must be counted.
	lookups, lists, figures *lane

	marks     marks
	abandoned abandonedWrites
}

// Open connects to the database and checks that it answers. The schema is
// taken as given; see package migrations.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{marks: newMarks()}
	share := divide(cfg.MaxConnections)
	for _, p := range []struct {
		pool        **pgxpool.Pool
		name        string
		connections int32
		settings    map[string]string
		tracer      trace.Tracer
	}{
		{&s.worker, "holdfast worker", share.Worker, sessionSettings, cfg.Tracer},
		{&s.submissions, "holdfast submission", share.Submissions, sessionSettings, cfg.Tracer},
		{&s.reads, "holdfast read", share.Reads, readSettings(), cfg.Tracer},
		{&s.heartbeats, "holdfast heartbeat", heartbeatConnections, sessionSettings, nil},
	} {
		pool, err := openPool(ctx, cfg.URL, p.name, p.connections, p.settings, p.tracer)
		if err != nil {
			s.Close()
			return nil, err
		}
		*p.pool = pool
	}
	s.lookups, s.lists, s.figures = lanes(s.reads, share.Reads)
	if err := s.Ping(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openPool(ctx context.Context, url, name string, connections int32, settings map[string]string, tracer trace.Tracer) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	cfg.MaxConns = connections
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.ConnConfig.ConnectTimeout = ConnectTimeout
	cfg.BeforeConnect = newSession
	if tracer != nil {
		cfg.ConnConfig.Tracer = queries{tracer}
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	for name, value := range settings {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// Ping reports whether the database answers to those who submit jobs;
// job.ErrUnavailable if not.
func (s *Store) Ping(ctx context.Context) error {
	return translate("ping", s.submissions.Ping(ctx))
}

func (s *Store) pools() []*pgxpool.Pool {
	return []*pgxpool.Pool{s.heartbeats, s.reads, s.submissions, s.worker}
}

// reconnect has every connection replaced before its next use.
func (s *Store) reconnect() {
	for _, pool := range s.pools() {
		pool.Reset()
	}
}

// Close ends every connection. Verbs must not be called afterwards. Writes that
// the server is still at work on go on there.
func (s *Store) Close() {
	s.abandoned.close()
	for _, pool := range s.pools() {
		if pool != nil { // Open may fail halfway
			pool.Close()
		}
	}
}
