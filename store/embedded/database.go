package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// duplicateDatabase is the SQLSTATE if another process has just created the database.
const duplicateDatabase = "42P04"

// ensureDatabase creates the database if the cluster is new.
func ensureDatabase(ctx context.Context, socketDir string) (err error) {
	conn, err := pgx.Connect(ctx, socketURL(socketDir, "postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", databaseName).Scan(&exists); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if exists {
		return nil
	}
	var pgErr *pgconn.PgError
	if _, err := conn.Exec(ctx, "create database "+databaseName); err != nil && (!errors.As(err, &pgErr) || pgErr.Code != duplicateDatabase) {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

// ping connects once. It returns the pid of the process that started the server, or ""
// if this package did not start the server.
func ping(ctx context.Context, socketDir string) (owner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, socketURL(socketDir, "postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "select coalesce(current_setting($1, true), '')", ownerSetting).Scan(&owner)
	return owner, err
}
