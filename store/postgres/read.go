package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// readTimeout limits a statement that reads jobs.
	readTimeout = 5 * time.Second
	// turnWithin is how long a read waits for its turn, and maxWaiting how many
	// reads of a lane wait. A read that waits costs less than one that is refused
	// at once and tried again.
	turnWithin = 2 * time.Second
	maxWaiting = 4096
)

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Rows runs a statement and returns its rows, or the driver's error.
func Rows[T any](ctx context.Context, from Querier, statement string, row pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := from.Query(ctx, sql.Text(statement), args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, row)
}

// Reader is a pool or a lane.
type Reader interface {
	// Read runs f on a connection and translates its error.
	Read(ctx context.Context, operation string, f func(Querier) error) error
}

// Read runs a statement that only reads, and returns its rows.
func Read[T any](ctx context.Context, from Reader, statement string, row pgx.RowToFunc[T], args ...any) (found []T, err error) {
	err = from.Read(ctx, operation(statement), func(conn Querier) (err error) {
		found, err = Rows(ctx, conn, statement, row, args...)
		return err
	})
	return found, err
}

// Read implements Reader.
func (p *Pool) Read(_ context.Context, operation string, f func(Querier) error) error {
	return Translate(operation, f(p.Pool))
}

// Lane limits how many reads of one kind run at once, so that slow ones leave
// connections for the others.
type Lane struct {
	pool    *Pool
	running chan struct{} // one element for each read that runs
	waiting chan struct{} // one for each that waits
}

// lanes divides the connections for reads: a sixth for figures, a third for
// lists, one for a diagnosis, and the rest for lookups. Each lane gets at least
// one, even if they have to share it.
func lanes(pool *Pool, connections int32) (lookups, lists, figures *Lane) {
	counted := max(connections/6, 1)
	listed := max(connections/3, 1)
	looked := max(connections-counted-listed-1, 1)
	return newLane(pool, looked, maxWaiting), newLane(pool, listed, maxWaiting), newLane(pool, counted, maxWaiting)
}

// staleLanes divides those of the replica: a sixth for figures, one to look at it, and the rest
// for lists.
func staleLanes(pool *Pool, connections int32) (lists, figures *Lane) {
	counted := max(connections/6, 1)
	return newLane(pool, max(connections-counted-1, 1), maxWaiting), newLane(pool, counted, maxWaiting)
}

func newLane(pool *Pool, atOnce int32, waiting int) *Lane {
	return &Lane{pool: pool, running: make(chan struct{}, atOnce), waiting: make(chan struct{}, waiting)}
}

// Read runs f on a connection when it is the caller's turn, and translates its
// error. The error is job.ErrBusy if too many wait already, if the turn does not
// come within turnWithin, or if the server canceled the statement after its
// timeout.
func (l *Lane) Read(ctx context.Context, operation string, f func(Querier) error) error {
	return l.use(ctx, operation, func(conn *pgxpool.Conn) error { return f(conn) })
}

// Snapshot is like Read, but in one transaction that only reads, so that everything f
// sees is from one moment. Unless setup is empty, it runs first.
func (l *Lane) Snapshot(ctx context.Context, operation, setup string, f func(pgx.Tx) error) error {
	return l.use(ctx, operation, func(conn *pgxpool.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if setup != "" {
				if _, err := tx.Exec(ctx, setup); err != nil {
					return err
				}
			}
			return f(tx)
		})
	})
}

// Send implements Lister.
func (l *Lane) Send(ctx context.Context, operation string, batch func() *pgx.Batch) error {
	return l.use(ctx, operation, func(conn *pgxpool.Conn) error { return conn.SendBatch(ctx, batch()).Close() })
}

func (l *Lane) use(ctx context.Context, operation string, f func(*pgxpool.Conn) error) error {
	if err := l.enter(ctx); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer func() { <-l.running }()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return Translate(operation, err)
	}
	defer conn.Release()
	err = f(conn)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == queryCanceled && ctx.Err() == nil {
		return fmt.Errorf("%s: %w: %w", operation, job.ErrBusy, err)
	}
	return Translate(operation, err)
}

func (l *Lane) enter(ctx context.Context) error {
	select {
	case l.running <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.waiting <- struct{}{}:
		defer func() { <-l.waiting }()
	default:
		return fmt.Errorf("%w: %d reads wait already", job.ErrBusy, cap(l.waiting))
	}
	patience := time.NewTimer(turnWithin)
	defer patience.Stop()
	select {
	case l.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return fmt.Errorf("%w: no turn within %s", job.ErrBusy, turnWithin)
	}
}
