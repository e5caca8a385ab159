package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Lister is a lane, or one that may be stale.
type Lister interface {
	Reader
	// Send is like Read, but for a batch of statements, which are one transaction. It may make the
	// batch twice.
	Send(ctx context.Context, operation string, batch func() *pgx.Batch) error
}

// StaleLane is for reads whose answer may be a little old: it leads to the replica, or to a
// lane of the primary if there is no replica, if that is down or too far behind, or if it does
// not answer the read. f may run twice.
//
// What the context says of its staleness holds: see job.Staleness.
type StaleLane struct {
	primary *Lane
	replica *Replica // nil for none
	lane    *Lane    // of the replica
}

// Read implements Reader.
func (s *StaleLane) Read(ctx context.Context, operation string, f func(Querier) error) error {
	return s.use(ctx, operation, pgx.ReadCommitted, func(tx pgx.Tx) error { return f(tx) },
		func() error { return s.primary.Read(ctx, operation, f) })
}

// Snapshot is that of Lane.
func (s *StaleLane) Snapshot(ctx context.Context, operation, setup string, f func(pgx.Tx) error) error {
	return s.use(ctx, operation, pgx.RepeatableRead, func(tx pgx.Tx) error {
		if setup != "" {
			if _, err := tx.Exec(ctx, setup); err != nil {
				return err
			}
		}
		return f(tx)
	}, func() error { return s.primary.Snapshot(ctx, operation, setup, f) })
}

// Send implements Lister.
func (s *StaleLane) Send(ctx context.Context, operation string, batch func() *pgx.Batch) error {
	return s.use(ctx, operation, pgx.ReadCommitted, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch()).Close() },
		func() error { return s.primary.Send(ctx, operation, batch) })
}

// use runs f in a transaction on the replica, which begins by looking at how far that server
// is. If the replica cannot answer, it returns what primary returns. A read for which the
// replica has no room or no time is refused like one of the primary: the primary would have no
// more of either.
func (s *StaleLane) use(ctx context.Context, operation string, level pgx.TxIsoLevel, f func(pgx.Tx) error, primary func() error) error {
	asked := job.StalenessOf(ctx)
	if s.replica == nil || !s.replica.usable(asked.Fresh) {
		return primary()
	}
	var began time.Time
	var age time.Duration
	err := s.lane.use(ctx, operation, func(conn *pgxpool.Conn) error {
		began = time.Now()
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: level, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			at, err := Rows(ctx, tx, "position", pgx.RowToStructByName[Position])
			if err != nil {
				return err
			}
			if age, err = s.replica.admit(at[0]); err != nil {
				return err
			}
			return f(tx)
		})
	})
	switch {
	case err == nil:
		s.replica.answered()
		asked.Note(age)
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, job.ErrBusy) && !canceledEarly(err, began):
		return err
	}
	s.replica.failed(err)
	return primary()
}

// canceledEarly reports whether the server canceled a read before its timeout, because the
// read was in the way of the log, or because somebody asked for it.
func canceledEarly(err error, began time.Time) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == queryCanceled && time.Since(began) < readTimeout
}

// conflicts reports whether a standby has ended a read because it was in the way of what it
// had to replay. The server's text is not always English.
func conflicts(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) &&
		(answer.Code == serializationFailure || answer.Code == deadlockDetected || answer.Code == queryCanceled)
}
