package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrations go through

	"github.com/holdfast-jobs/holdfast/migrations"
)

// templateLock is the advisory lock under which a template is built.
const templateLock = 0x686f6c6466617374

// migratedTemplate returns the name of a database with the schema and without
// connections. Processes that test the same migrations on one server share it; the
// first one builds it.
func (s *server) migratedTemplate(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.template != "" {
		return s.template, nil
	}
	hash, known := migrationsHash()
	if !known {
		hash = strings.ToLower(rand.Text())
	}
	name := "holdfast_template_" + hash
	if err := s.ensureTemplate(ctx, name); err != nil {
		return "", fmt.Errorf("template database: %w", err)
	}
	s.template, s.private = name, !known
	return name, nil
}

func (s *server) ensureTemplate(ctx context.Context, name string) error {
	conn, err := s.admin.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return err
	}
	defer func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", int64(templateLock))
	}()
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists); err != nil || exists {
		return err
	}
	return s.buildTemplate(ctx, name)
}

// buildTemplate migrates a database under another name and renames it at the end, so a
// template is either complete or absent.
func (s *server) buildTemplate(ctx context.Context, name string) error {
	draft := name + "_draft"
	if _, err := s.admin.Exec(ctx, "drop database if exists "+quoted(draft)+" with (force)"); err != nil {
		return err
	}
	if err := s.createDatabase(ctx, draft, "template0"); err != nil {
		return err
	}
	db, err := sql.Open("pgx", s.address(draft))
	if err != nil {
		return err
	}
	_, err = migrations.Up(ctx, db)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	// A template that accepts no connections can always be cloned.
	if _, err := s.admin.Exec(ctx, "alter database "+quoted(draft)+" with allow_connections false"); err != nil {
		return err
	}
	_, err = s.admin.Exec(ctx, "alter database "+quoted(draft)+" rename to "+quoted(name))
	return err
}

func (s *server) dropTemplate(ctx context.Context, name string) error {
	if _, err := s.admin.Exec(ctx, "drop database if exists "+quoted(name)+" with (force)"); err != nil {
		return fmt.Errorf("drop the template: %w", err)
	}
	return nil
}

// migrationsHash distinguishes the schemas of two checkouts. It reads the migrations
// beside this file. Without them, the hash is unknown.
func migrationsHash() (hash string, known bool) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", false
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(here), "..", "..", "migrations", "*.sql"))
	if err != nil || len(files) == 0 {
		return "", false
	}
	sum := sha256.New()
	for _, file := range files { // sorted by Glob
		text, err := os.ReadFile(file)
		if err != nil {
			return "", false
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), true
}
