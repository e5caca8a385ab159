package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// checkAbandonedEvery is how often we ask the server about abandoned writes.
	checkAbandonedEvery = time.Second
	// checkAbandonedWithin limits one check.
	checkAbandonedWithin = 2 * time.Second
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

// sever closes the connection. If the server is still working on the write, it
// finishes it.
func (w abandonedWrite) sever() { _ = w.conn.Conn().Close() }

// abandonedWrites are those that have no answer yet. Each keeps its connection,
// so the size of the pool limits how many there are, here and on the server.
type abandonedWrites struct {
	mu     sync.Mutex
	all    map[abandonedWrite]struct{}
	stop   context.CancelFunc // stops the monitor; nil while there is none
	closed bool
	loops  sync.WaitGroup
}

// add takes a write, and starts the monitor if there is none.
func (a *abandonedWrites) add(db *DB, w abandonedWrite) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		w.sever()
		return
	}
	if a.all == nil {
		a.all = make(map[abandonedWrite]struct{})
	}
	a.all[w] = struct{}{}
	if a.stop == nil {
		var ctx context.Context
		ctx, a.stop = context.WithCancel(context.Background())
		a.loops.Go(func() { a.monitor(ctx, db) })
	}
}

// unanswered returns the writes without an answer. If there are none, the
// monitor ends.
func (a *abandonedWrites) unanswered() []abandonedWrite {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.all, func(w abandonedWrite, _ struct{}) bool { return w.isDone() })
	if len(a.all) == 0 {
		a.stop()
		a.stop = nil
	}
	return slices.Collect(maps.Keys(a.all))
}

// close severs all connections and ends the monitor.
func (a *abandonedWrites) close() {
	a.mu.Lock()
	a.closed = true
	for w := range a.all {
		w.sever()
	}
	if a.stop != nil {
		a.stop()
	}
	a.mu.Unlock()
	a.loops.Wait()
}

// monitor severs the connections of abandoned writes that the server is not working
// on. Either the answer was lost, or new connections now lead to another server. All
// pools then reconnect, because their other connections may have the same fault.
func (a *abandonedWrites) monitor(ctx context.Context, db *DB) {
	for {
		writes := a.unanswered()
		if len(writes) == 0 {
			return
		}
		select {
		case <-writes[0].done:
			continue // most end a moment after their caller has left
		case <-time.After(checkAbandonedEvery):
		case <-ctx.Done():
			return
		}
		working, err := db.working(ctx, writes)
		if err != nil {
			continue
		}
		severed := false
		for _, w := range writes {
			if !w.isDone() && !slices.Contains(working, w.conn.PID()) {
				w.sever()
				severed = true
			}
		}
		if severed {
			db.reconnect()
		}
	}
}

// working returns the backends of the writes that the server is working on, or that
// wait for a standby. Behind a pooler, it returns all of them while any may. It asks over
// a new connection, which leads to the same server as any other new connection.
func (db *DB) working(ctx context.Context, writes []abandonedWrite) ([]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, checkAbandonedWithin)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, db.Reads.Config().ConnConfig.Copy())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	id := func(conn *pgconn.PgConn) int32 { return int32(conn.PID()) } //nolint:gosec // pg_stat_activity has the same type
	rows, err := conn.Query(ctx, sql.Text("at_work"), Column(writes, func(w abandonedWrite) int32 { return id(w.conn) }), id(conn.PgConn()))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (uint32, error) {
		pid, err := pgx.RowTo[int32](row)
		return uint32(pid), err //nolint:gosec // as above
	})
}
