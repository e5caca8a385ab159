// Package migrations contains the database schema and migrates databases to it. The
// .sql files are goose migrations; their comments explain them.
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
// processes may call it at once: a PostgreSQL advisory lock makes the others wait
// for one of them.
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

// Status lists every migration in order, applied or pending. It creates
// goose's own version table if it is missing, and writes nothing else.
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

// Compare returns the newest migration that the database has, 0 for none, and the
// newest that exists. Unlike Up, it does not wait for other processes. It creates
// goose's own version table if it is missing, and writes nothing else.
func Compare(ctx context.Context, db *sql.DB) (has, newest int64, err error) {
	provider, err := open(db)
	if err != nil {
		return 0, 0, err
	}
	has, newest, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("schema version: %w", err)
	}
	return has, newest, nil
}

func open(db *sql.DB) (*goose.Provider, error) {
	// Try the lock once a second for up to five minutes: another process may need
	// that long to migrate a large ledger.
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
