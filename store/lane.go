package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// readTimeout bounds a statement that reads jobs.
	readTimeout = 5 * time.Second
	// turnWithin is how long a read waits for its turn, and waitingAtMost how
	// many of a lane wait. A read that waits costs less than one that is
	// refused at once and comes again.
	turnWithin    = 2 * time.Second
	waitingAtMost = 4096
)

// lane is a part of the connections for reads: so many reads at once, so that
// dear ones leave the others some.
type lane struct {
	pool  *pgxpool.Pool
	turns chan struct{} // held by those that run
	queue chan struct{} // held by those that wait
}

// lanes divides the connections for reads: a sixth for figures, a third for
// lists, one for a diagnosis, and the rest for lookups; at least one for each,
// which they share where there are fewer.
func lanes(pool *pgxpool.Pool, connections int32) (lookups, lists, figures *lane) {
	counted := max(connections/6, 1)
	listed := max(connections/3, 1)
	looked := max(connections-counted-listed-1, 1)
	return newLane(pool, looked, waitingAtMost), newLane(pool, listed, waitingAtMost), newLane(pool, counted, waitingAtMost)
}

func newLane(pool *pgxpool.Pool, atOnce int32, waiting int) *lane {
	return &lane{pool: pool, turns: make(chan struct{}, atOnce), queue: make(chan struct{}, waiting)}
}

// read runs f on a connection when it is the caller's turn, and returns its
// error, which f has translated. It returns job.ErrBusy when too many wait already, the turn does not come within
// turnWithin, or the server gave the statement up after its timeout.
func (l *lane) read(ctx context.Context, operation string, f func(*pgxpool.Conn) error) error {
	if err := l.enter(ctx); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer func() { <-l.turns }()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return translate(operation, err)
	}
	defer conn.Release()
	err = f(conn)
	if tookTooLong(err) && ctx.Err() == nil {
		return fmt.Errorf("%s: %w: %w", operation, job.ErrBusy, err)
	}
	return err
}

func (l *lane) enter(ctx context.Context) error {
	select {
	case l.turns <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.queue <- struct{}{}:
		defer func() { <-l.queue }()
	default:
		return fmt.Errorf("%w: %d reads wait already", job.ErrBusy, cap(l.queue))
	}
	patience := time.NewTimer(turnWithin)
	defer patience.Stop()
	select {
	case l.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return fmt.Errorf("%w: no turn within %s", job.ErrBusy, turnWithin)
	}
}

func tookTooLong(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == queryCanceled
}
