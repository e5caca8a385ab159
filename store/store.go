package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"
)

// Config says how to reach the database.
type Config struct {
	// URL is a PostgreSQL connection URL or keyword string.
	URL string
	// MaxConnections bounds the pool that everything but heartbeats uses; at
	// least 2. Heartbeats have heartbeatConnections of their own on top, and
	// one more connection listens for hints.
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
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off",
	"enable_hashjoin":                     "off",
	"enable_mergejoin":                    "off",
	"enable_hashagg":                      "off",
	"enable_memoize":                      "off",
	"jit":                                 "off",
}

// Store is the job ledger in PostgreSQL. It is safe for concurrent use.
type Store struct {
	work       *pgxpool.Pool
	heartbeats *pgxpool.Pool
	marks      marks
}

// Open connects to the database and checks that it answers. The schema is
// taken as given; see package migrations.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	work, err := openPool(ctx, cfg.URL, "holdfast", max(cfg.MaxConnections, 2), cfg.Tracer)
	if err != nil {
		return nil, err
	}
	heartbeats, err := openPool(ctx, cfg.URL, "holdfast heartbeat", heartbeatConnections, nil)
	if err != nil {
		work.Close()
		return nil, err
	}
	s := &Store{work: work, heartbeats: heartbeats, marks: newMarks()}
	if err := s.Ping(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openPool(ctx context.Context, url, name string, connections int32, tracer trace.Tracer) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	cfg.MaxConns = connections
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.ConnConfig.ConnectTimeout = ConnectTimeout
	if tracer != nil {
		cfg.ConnConfig.Tracer = queries{tracer}
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	for name, value := range sessionSettings {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return pool, nil
}

// Ping reports whether the database answers; job.ErrUnavailable if not.
func (s *Store) Ping(ctx context.Context) error {
	return translate("ping", s.work.Ping(ctx))
}

// Close ends every connection. Verbs must not be called afterwards.
func (s *Store) Close() {
	s.heartbeats.Close()
	s.work.Close()
}
