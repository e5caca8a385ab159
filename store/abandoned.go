package store

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// lookAtAbandoned is how often the server is asked about abandoned writes.
	lookAtAbandoned = time.Second
	// lookAtAbandonedWithin bounds one look.
	lookAtAbandonedWithin = 2 * time.Second
)

// abandonedWrite is a write whose caller no longer waits for its answer.
type abandonedWrite struct {
	conn *pgconn.PgConn // in use until done is closed
	done <-chan struct{}
}

func (w abandonedWrite) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// abandonedWrites are those that have no answer yet. Each keeps its connection, so
// that a pool bounds how many there are, here and on the server.
type abandonedWrites struct {
	mu     sync.Mutex
	all    map[abandonedWrite]struct{}
	watch  context.CancelFunc // nil while nobody watches
	closed bool
	loops  sync.WaitGroup
}

// add takes a write and has it watched.
func (a *abandonedWrites) add(s *Store, w abandonedWrite) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		sever(w)
		return
	}
	if a.all == nil {
		a.all = make(map[abandonedWrite]struct{})
	}
	a.all[w] = struct{}{}
	if a.watch == nil {
		var ctx context.Context
		ctx, a.watch = context.WithCancel(context.Background())
		a.loops.Go(func() { s.watchAbandoned(ctx) })
	}
}

// left returns the writes that have no answer. Where there are none, the watch ends.
func (a *abandonedWrites) left() []abandonedWrite {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.all, func(w abandonedWrite, _ struct{}) bool { return w.isDone() })
	if len(a.all) == 0 {
		a.watch()
		a.watch = nil
	}
	return slices.Collect(maps.Keys(a.all))
}

// close severs all connections and ends the watch.
func (a *abandonedWrites) close() {
	a.mu.Lock()
	a.closed = true
	for w := range a.all {
		sever(w)
	}
	if a.watch != nil {
		a.watch()
	}
	a.mu.Unlock()
	a.loops.Wait()
}

// sever ends a connection. The server, if it is still at work on the write, goes on.
func sever(w abandonedWrite) { _ = w.conn.Conn().Close() }

// watchAbandoned severs the connections of abandoned writes that the server is not
// at work on: the answer is lost, or the server is not the one that connections
// lead to now. Then the pools connect anew, since their other connections may lead
// as far.
func (s *Store) watchAbandoned(ctx context.Context) {
	for {
		writes := s.abandoned.left()
		if len(writes) == 0 {
			return
		}
		select {
		case <-writes[0].done:
			continue // as most are, a moment after their caller has left
		case <-time.After(lookAtAbandoned):
		case <-ctx.Done():
			return
		}
		working, err := s.atWork(ctx, writes)
		if err == nil {
			severed := false
			for _, w := range writes {
				if !w.isDone() && !slices.Contains(working, w.conn.PID()) {
					sever(w)
					severed = true
				}
			}
			if severed {
				s.reconnect()
			}
		}
	}
}

// atWork returns which backends of the writes are at work, or wait for a standby. It
// asks over a connection of its own, which goes where a new one would.
func (s *Store) atWork(ctx context.Context, writes []abandonedWrite) ([]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, lookAtAbandonedWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.reads.Config().ConnConfig.Copy())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, atWorkSQL, column(writes, func(w abandonedWrite) int32 { return int32(w.conn.PID()) })) //nolint:gosec // as pg_stat_activity has it
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (uint32, error) {
		pid, err := pgx.RowTo[int32](row)
		return uint32(pid), err //nolint:gosec // as above
	})
}
