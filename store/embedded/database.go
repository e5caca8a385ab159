package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	userName     = "holdfast"
	databaseName = "holdfast"
	socketPort   = "5432"
	socketName   = ".s.PGSQL." + socketPort
)

func socketURL(socketDir, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(userName),
		Path:     "/" + database,
		RawQuery: url.Values{"host": {socketDir}, "port": {socketPort}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// SQLSTATEs that decide here.
const (
	duplicateDatabase = "42P04"
	noSuchDatabase    = "3D000"
)

// ensureDatabase creates the database when the cluster is new.
func ensureDatabase(ctx context.Context, socketDir string) error {
	conn, err := pgx.Connect(ctx, socketURL(socketDir, databaseName))
	if err == nil {
		return conn.Close(ctx)
	}
	if !hasState(err, noSuchDatabase) {
		return fmt.Errorf("connect: %w", err)
	}
	conn, err = pgx.Connect(ctx, socketURL(socketDir, "postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = conn.Exec(ctx, "create database "+databaseName)
	if err != nil && !hasState(err, duplicateDatabase) {
		return errors.Join(fmt.Errorf("create the database: %w", err), conn.Close(ctx))
	}
	return conn.Close(ctx)
}

func hasState(err error, state string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == state
}
