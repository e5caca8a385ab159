package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// errUnreplicated says that the server committed without the standby, because
// somebody canceled the wait for it. A failover loses such a commit.
var errUnreplicated = errors.New("committed on the primary alone: the wait for the standby was canceled")

// Write runs do on a connection of the pool. Every change of the database goes
// through here.
//
// It never cancels a statement that was sent: a commit whose wait for a standby
// is canceled becomes visible although the standby does not have it. When the
// context ends first, Write returns and leaves the connection waiting for the
// server. Therefore do must not share variables with its caller; it returns its
// result. Write runs do again if the server rolled it back because of a deadlock.
//
// An error includes job.ErrOutcomeUnknown unless the server has rolled back or
// nothing was sent.
func Write[T any](ctx context.Context, pool *Pool, operation string, do func(context.Context, *pgx.Conn) (T, error)) (T, error) {
	for {
		value, err := writeOnce(ctx, pool, do)
		if !lostRace(err) {
			return value, Translate(operation, err)
		}
	}
}

func writeOnce[T any](ctx context.Context, pool *Pool, do func(context.Context, *pgx.Conn) (T, error)) (T, error) {
	var value, none T
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return none, err
	}
	reconnects := pool.db.reconnects.next()
	used := sessionOf(conn.Conn())
	wire := conn.Conn().PgConn() // from here on, conn belongs to the goroutine
	var panicked any
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer conn.Release()
		defer func() { panicked = recover() }()
		used.begin()
		defer used.end(conn.Conn())
		value, err = do(context.WithoutCancel(ctx), conn.Conn())
		if err == nil && used.unreplicated {
			err = errUnreplicated
		}
	}()
	doubt := func() { pool.db.doubted.add(pool.db, doubtedWrite{conn: wire, done: done}) }
	select {
	case <-done:
	case <-reconnects:
		doubt()
		select {
		case <-done:
		case <-ctx.Done():
		}
	case <-ctx.Done():
	}
	select {
	case <-done:
	default:
		doubt()
		return none, Unknown(ctx.Err())
	}
	switch {
	case panicked != nil:
		panic(panicked) // where the caller can recover from the panic
	case err == nil:
		return value, nil
	case isReadOnly(err):
		pool.db.reconnect()
	case !Answered(err):
		err = Unknown(err)
	}
	return none, err
}

// Unknown marks an error after which a write may or may not be committed.
func Unknown(err error) error { return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, err) }

// Change runs a statement that writes, and returns its rows.
func Change[T any](ctx context.Context, pool *Pool, statement string, row pgx.RowToFunc[T], args ...any) ([]T, error) {
	return Write(ctx, pool, operation(statement), func(ctx context.Context, conn *pgx.Conn) ([]T, error) {
		return Rows(ctx, conn, statement, row, args...)
	})
}

// ChangeOne is Change for a statement that returns one row.
func ChangeOne[T any](ctx context.Context, pool *Pool, statement string, args ...any) (T, error) {
	rows, err := Change(ctx, pool, statement, pgx.RowTo[T], args...)
	if err != nil || len(rows) == 0 {
		var none T
		return none, cmp.Or(err, Translate(operation(statement), pgx.ErrNoRows))
	}
	return rows[0], nil
}

// Do runs a statement that writes and returns nothing.
func (p *Pool) Do(ctx context.Context, statement string, args ...any) error {
	_, err := Write(ctx, p, operation(statement), func(ctx context.Context, conn *pgx.Conn) (struct{}, error) {
		_, err := conn.Exec(ctx, sql.Text(statement), args...)
		return struct{}{}, err
	})
	return err
}

// Confirm runs a statement and returns its rows once the standby has everything that
// they depend on. Use it for a statement that may find nothing to write. Such a
// statement does not wait for the standby by itself, and a failover may lose the
// commits that it saw.
func Confirm[T any](ctx context.Context, pool *Pool, statement string, row pgx.RowToFunc[T], args ...any) ([]T, error) {
	return Write(ctx, pool, operation(statement), func(ctx context.Context, conn *pgx.Conn) (found []T, err error) {
		batch := &pgx.Batch{}
		QueueRows(batch, &found, statement, row, args...)
		QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return found, err
	})
}

// QueueRows adds a statement to a batch. Its rows are in found when the batch is
// closed.
func QueueRows[T any](batch *pgx.Batch, found *[]T, statement string, row pgx.RowToFunc[T], args ...any) {
	batch.Queue(sql.Text(statement), args...).Query(func(rows pgx.Rows) (err error) {
		*found, err = pgx.CollectRows(rows, row)
		return err
	})
}

// QueueBarrier makes the transaction of a batch wait for the standby even if
// nothing else in it writes.
func QueueBarrier(batch *pgx.Batch) { batch.Queue(sql.Text("barrier")) }
