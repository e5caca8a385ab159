// Package migrations carries the database schema and brings a database up to
// it. The .sql files are goose migrations and explain themselves.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Version is one migration and whether the database has it.
type Version struct {
	Number    int64
	Name      string
	AppliedAt time.Time // zero when pending
}

// Up applies every pending migration and returns how many there were. Several
// processes may call it at once: a PostgreSQL advisory lock lets one of them
// work while the others wait.
func Up(ctx context.Context, db *sql.DB) (int, error) {
	provider, err := open(db)
	if err != nil {
		return 0, err
	}
	applied, err := provider.Up(ctx)
	if err != nil {
		return len(applied), fmt.Errorf("migrate: %w", err)
	}
	return len(applied), nil
}

// Status lists every migration in order, applied or pending. It writes
// nothing but goose's own version table, where that is missing.
func Status(ctx context.Context, db *sql.DB) ([]Version, error) {
	provider, err := open(db)
	if err != nil {
		return nil, err
	}
	statuses, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	versions := make([]Version, 0, len(statuses))
	for _, s := range statuses {
		versions = append(versions, Version{Number: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt})
	}
	return versions, nil
}

func open(db *sql.DB) (*goose.Provider, error) {
	// The lock is tried once a second for up to five minutes: a migration of
	// a large ledger by a sibling may take that long.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithVerbose(false))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}
