package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// probePatience is how long the probe for prepared statements waits for a second session of
	// the server's. A pooler that has one only makes it wait.
	probePatience = time.Second
	// probe is the name of the statement that the probe prepares.
	probe = "holdfast_probe"
)

// ErrForgetfulPooler says that a pooler gives a client's transactions to different sessions,
// and prepared statements stay with the session in which they were made.
var ErrForgetfulPooler = errors.New("the pooler does not keep prepared statements: " +
	"use PgBouncer 1.21 or later with max_prepared_statements above 0, or session pooling")

// CheckPooler returns an error if the URL through a pooler and the direct one do not lead to
// the same database, and ErrForgetfulPooler if the pooler can be seen to lose prepared statements.
// Neither needs the schema. The error is job.ErrUnavailable if waiting may help.
func CheckPooler(ctx context.Context, through, direct string) error {
	pooled, err := locate(ctx, through)
	if err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	straight, err := locate(ctx, direct)
	if err != nil {
		return fmt.Errorf("database.direct_url: %w", err)
	}
	if err := match(pooled, straight); err != nil {
		return err
	}
	if err := probeStatements(ctx, through); err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	return nil
}

// place is where a database is.
type place struct {
	// Cluster was drawn when the server's data directory was made. Standbys share it.
	Cluster int64
	Name    string
}

func match(pooled, straight place) error {
	switch {
	case pooled.Name != straight.Name:
		return fmt.Errorf("database.url leads to the database %q and database.direct_url to %q: both must lead to the same one", pooled.Name, straight.Name)
	case pooled.Cluster != straight.Cluster:
		return fmt.Errorf("database.url and database.direct_url lead to databases %q of different servers (system identifiers %d and %d): both must lead to the same one",
			pooled.Name, pooled.Cluster, straight.Cluster)
	}
	return nil
}

func locate(ctx context.Context, url string) (is place, err error) {
	err = withPooledConn(ctx, url, func(conn *pgx.Conn) error {
		found, err := Rows(ctx, conn, "which_database", pgx.RowToStructByName[place])
		if err == nil {
			is = found[0]
		}
		return err
	})
	return is, err
}

// probeStatements prepares a statement in one session and runs it while the session that most
// poolers would choose for that is in use.
func probeStatements(ctx context.Context, url string) error {
	return withPooledConn(ctx, url, func(first *pgx.Conn) error {
		if _, err := first.Prepare(ctx, probe, sql.Text("clock")); err != nil {
			return err
		}
		return withPooledConn(ctx, url, func(second *pgx.Conn) error {
			busy, err := second.Begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = busy.Rollback(context.WithoutCancel(ctx)) }()
			if _, err := busy.Exec(ctx, sql.Text("clock")); err != nil {
				return err
			}
			patience, cancel := context.WithTimeout(ctx, probePatience)
			defer cancel()
			_, err = first.Exec(patience, probe)
			if patience.Err() != nil && ctx.Err() == nil {
				return nil // the pooler has one session only
			}
			return err
		})
	})
}

// withPooledConn runs do on a connection that leads through a pooler, perhaps, and translates its error.
func withPooledConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	cfg.ConnectTimeout = ConnectTimeout
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	setUp(cfg, pooledSettings(), "holdfast pooler")
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return Translate("connect", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return Translate("pooler", do(conn))
}
