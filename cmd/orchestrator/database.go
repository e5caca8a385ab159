package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/transfer"
)

// stopDatabaseWithin is how long an embedded server may take to shut down before it is
// stopped at once.
const stopDatabaseWithin = 20 * time.Second

// database is where the jobs are.
type database struct {
	url config.DatabaseURL
	// direct leads past the pooler that url leads through; empty for no pooler.
	direct config.DatabaseURL
	// cell is which cell the configuration says it is.
	cell job.Cell
	// embedded says that this program starts the server.
	embedded bool
	// ended is closed when our embedded server has ended; nil for any other server.
	ended <-chan struct{}
	// close stops our embedded server, at once when abort ends.
	close func(abort context.Context)
}

// openDatabase returns your database, or starts an embedded one.
func openDatabase(ctx context.Context, cfg config.Config, log *slog.Logger) (*database, error) {
	if cfg.Database.URL != "" {
		if err := cfg.Database.URL.Check(); err != nil {
			return nil, usageError{fmt.Errorf("database.url: %w", err)}
		}
		if err := cfg.Database.DirectURL.Check(); err != nil && cfg.Database.DirectURL != "" {
			return nil, usageError{fmt.Errorf("database.direct_url: %w", err)}
		}
		if err := cfg.Database.ReplicaURL.Check(); err != nil && cfg.Database.ReplicaURL != "" {
			return nil, usageError{fmt.Errorf("database.replica_url: %w", err)}
		}
		return &database{url: cfg.Database.URL, direct: cfg.Database.DirectURL, cell: cfg.Database.Cell(), close: func(context.Context) {}}, nil
	}
	log.Info("starting the embedded PostgreSQL", "data_dir", cfg.Embedded.DataDir)
	server, err := embedded.Start(ctx, embedded.Config{
		DataDir: cfg.Embedded.DataDir, BinDir: cfg.Embedded.BinDir, Log: log.With("component", "postgres"),
	})
	if err != nil {
		return nil, fmt.Errorf("no database.url is set: %w", err)
	}
	if server.Done() == nil {
		log.Warn("another process started the embedded PostgreSQL, which ends with that process",
			"data_dir", cfg.Embedded.DataDir)
	}
	url := config.DatabaseURL(server.URL())
	return &database{url: url, cell: cfg.Database.Cell(), embedded: true, ended: server.Done(), close: func(abort context.Context) {
		ctx, cancel := context.WithTimeout(abort, stopDatabaseWithin)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			log.Error("the embedded PostgreSQL did not shut down cleanly", "error", err)
		}
	}}, nil
}

// past is the URL that leads through no pooler.
func (d *database) past() string { return cmp.Or(d.direct, d.url).Reveal() }

// reach returns nil when the database answers and accepts writes.
func (d *database) reach(ctx context.Context) error { return postgres.Reach(ctx, d.past()) }

// withSQL calls do with a connection pool for migrations. The error is
// job.ErrUnavailable when the database may become usable.
func (d *database) withSQL(do func(*sql.DB) error) error {
	cfg, err := postgres.Unlimited(d.past())
	if err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	db := stdlib.OpenDB(*cfg, stdlib.OptionBeforeConnect(postgres.Choose))
	err = do(db)
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if postgres.Unavailable(err) {
		return fmt.Errorf("%w: %w", job.ErrUnavailable, err)
	}
	return err
}

// isOne returns an error if the URLs through a pooler and past it do not lead to the same
// database as the same user, or if the pooler cannot serve.
func (d *database) isOne(ctx context.Context) error {
	if d.direct == "" {
		return nil
	}
	return postgres.CheckPooler(ctx, d.url.Reveal(), d.direct.Reveal())
}

// seemsOne is isOne for commands that need no pooler: if it does not answer, they go on.
func (d *database) seemsOne(ctx context.Context) error {
	if err := d.isOne(ctx); !errors.Is(err, job.ErrUnavailable) {
		return err
	}
	return nil
}

// isOpen returns an error if nobody may work on the ledger, because it was moved to another
// database or is being moved into this one.
func (d *database) isOpen(ctx context.Context) error {
	return d.named(transfer.Check(ctx, d.past()))
}

// hasCell returns job.ErrWrongCell if the database is another cell than the configuration
// says, or none.
func (d *database) hasCell(ctx context.Context) error {
	has, err := postgres.ReadCell(ctx, d.past())
	if err == nil {
		err = job.MatchCell(has, d.cell)
	}
	return d.named(err)
}

// isMeant returns an error if the configuration means another database: the pooler leads to
// another one, or it names another cell.
func (d *database) isMeant(ctx context.Context) error {
	if err := d.seemsOne(ctx); err != nil || d.cell == (job.Cell{}) {
		return err
	}
	return d.hasCell(ctx)
}

// becomesCell is whether the database is no cell yet and is to be one. The error is
// job.ErrWrongCell if it is another.
func (d *database) becomesCell(ctx context.Context) (bool, error) {
	has, err := postgres.ReadCell(ctx, d.past())
	switch {
	case err != nil:
	case has == (job.Cell{}):
		return d.cell != (job.Cell{}), nil
	default:
		err = job.MatchCell(has, d.cell)
	}
	return false, d.named(err)
}

// named says which database an error is about.
func (d *database) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database %s: %w", cmp.Or(d.direct, d.url), err)
}

// migrated is what a migration has changed.
type migrated struct {
	migrations int
	// settings is how many settings the role was given; only for a pooler.
	settings int
	// cell is set if the database has become one.
	cell job.Cell
}

// migrate brings the schema up to date. If there is a pooler, it also gives the role the
// settings of the store's sessions: a pooler does not. A database that is no cell becomes the
// one of the configuration. It refuses another cell, and a ledger on which nobody may work.
func (d *database) migrate(ctx context.Context) (done migrated, err error) {
	if err := d.isOpen(ctx); err != nil {
		return done, err
	}
	becomes, err := d.becomesCell(ctx)
	if err != nil {
		return done, err
	}
	err = d.withSQL(func(db *sql.DB) error {
		done.migrations, err = migrations.Up(ctx, db)
		return err
	})
	if err == nil && d.direct != "" {
		done.settings, err = postgres.SetDefaults(ctx, d.direct.Reveal())
	}
	if err == nil && becomes {
		if err = postgres.TakeCell(ctx, d.past(), d.cell); err == nil {
			done.cell = d.cell
		}
	}
	return done, err
}
