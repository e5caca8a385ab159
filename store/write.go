package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// errUnreplicated says that the server committed without the standby that it
// should have waited for, because somebody canceled the wait. A failover loses
// such a commit.
var errUnreplicated = errors.New("committed on the primary alone: the wait for the standby was canceled")

// write runs do on a connection of the pool. Every change of the database goes
// through here.
//
// A statement that was sent is never canceled: a canceled commit that waits for a
// standby becomes visible although the standby does not have it. When the context
// ends first, write returns and leaves the connection to wait for the server. do
// must therefore touch nothing that its caller uses afterwards, but return it.
//
// An error is job.ErrOutcomeUnknown unless the server has rolled back or nothing
// was sent.
func write[T any](ctx context.Context, s *Store, pool *pgxpool.Pool, do func(context.Context, *pgx.Conn) (T, error)) (T, error) {
	var value, none T
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return none, err
	}
	used := sessionOf(conn.Conn())
	wire := conn.Conn().PgConn() // conn is the goroutine's from here on
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
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		default:
			s.abandoned.add(s, abandonedWrite{conn: wire, done: done})
			return none, unknown(ctx.Err())
		}
	}
	switch {
	case panicked != nil:
		panic(panicked) // where the caller can recover from it
	case err == nil:
		return value, nil
	case isReadOnly(err):
		s.reconnect()
	case !answered(err):
		err = unknown(err)
	}
	return none, err
}

func unknown(err error) error { return fmt.Errorf("%w: %w", job.ErrOutcomeUnknown, err) }

// changed runs one statement that writes, and returns its rows.
func changed[T any](ctx context.Context, s *Store, pool *pgxpool.Pool, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	return write(ctx, s, pool, func(ctx context.Context, conn *pgx.Conn) ([]T, error) {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, row)
	})
}

// exec runs one statement that writes and returns nothing.
func (s *Store) exec(ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) error {
	_, err := write(ctx, s, pool, func(ctx context.Context, conn *pgx.Conn) (struct{}, error) {
		_, err := conn.Exec(ctx, sql, args...)
		return struct{}{}, err
	})
	return err
}

// confirmed runs one statement and returns its rows once the standby has all that
// they rest on. A statement that finds nothing to write does not wait for the
// standby by itself, nor does one that only reads; what it saw may be a commit
// that a failover loses.
func confirmed[T any](ctx context.Context, s *Store, pool *pgxpool.Pool, row pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	return write(ctx, s, pool, func(ctx context.Context, conn *pgx.Conn) (found []T, err error) {
		batch := &pgx.Batch{}
		batch.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, row)
			return err
		})
		waitToo(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return found, err
	})
}

// waitToo has the transaction of the batch wait for the standby whatever else it does.
func waitToo(batch *pgx.Batch) { batch.Queue(barrierSQL) }

// only returns the only row, or pgx.ErrNoRows.
func only[T any](rows []T, err error) (T, error) {
	if err != nil || len(rows) == 0 {
		var none T
		return none, cmp.Or(err, pgx.ErrNoRows)
	}
	return rows[0], nil
}
