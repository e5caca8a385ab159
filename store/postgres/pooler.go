package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// poolerPatience bounds the whole check: a pooler without a server accepts connections and lets
	// their statements wait.
	poolerPatience = ConnectTimeout
	// probePatience is how long the probe for prepared statements waits for a second session of
	// the server's. A pooler that has one only makes it wait.
	probePatience = time.Second
	// probe is the name of the statement that the probe prepares.
	probe = "holdfast_probe"
	// probing is the purpose of its connections.
	probing = "pooler"
)

// ErrForgetfulPooler says that a pooler gives a client's transactions to different sessions,
// and prepared statements stay with the session in which they were made.
var ErrForgetfulPooler = errors.New("the pooler does not keep prepared statements: " +
	"use PgBouncer 1.21 or later with max_prepared_statements above 0, or session pooling")

// CheckPooler returns an error if the URL through a pooler and the direct one do not lead to
// the same database as the same user, and ErrForgetfulPooler if the pooler can be seen to lose prepared statements.
// Neither needs the schema. The error is job.ErrUnavailable if waiting may help.
func CheckPooler(ctx context.Context, through, direct string) error {
	bounded, cancel := context.WithTimeout(ctx, poolerPatience)
	defer cancel()
	err := checkPooler(bounded, through, direct)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("database.url: %w: no answer through the pooler within %s", job.ErrUnavailable, poolerPatience)
	}
	return err
}

func checkPooler(ctx context.Context, through, direct string) error {
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

// match compares the servers and the databases that both URLs lead to, and as which user.
func match(pooled, straight Server) error {
	switch {
	case pooled.Database != straight.Database:
		return fmt.Errorf("database.url leads to the database %q and database.direct_url to %q: both must lead to the same one", pooled.Database, straight.Database)
	case pooled.Cluster != straight.Cluster:
		return fmt.Errorf("database.url and database.direct_url lead to databases %q of different servers (system identifiers %d and %d): both must lead to the same one",
			pooled.Database, pooled.Cluster, straight.Cluster)
	case pooled.User != straight.User:
		return fmt.Errorf("database.url leads to the database as the user %q and database.direct_url as %q: both need the same one, which gets the settings of the sessions",
			pooled.User, straight.User)
	}
	return nil
}

// locate returns where the URL leads.
func locate(ctx context.Context, url string) (at Server, err error) {
	err = withConn(ctx, url, probing, pooledSettings(), func(conn *pgx.Conn) error {
		at, err = serverOf(ctx, conn)
		return err
	})
	return at, err
}

// probeStatements prepares a statement in one session and runs it while the session that most
// poolers would choose for that is in use.
func probeStatements(ctx context.Context, url string) error {
	return withConn(ctx, url, probing, pooledSettings(), func(first *pgx.Conn) error {
		if _, err := first.Prepare(ctx, probe, sql.Text("clock")); err != nil {
			return err
		}
		return withConn(ctx, url, probing, pooledSettings(), func(second *pgx.Conn) error {
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
