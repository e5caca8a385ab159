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
	// checkDoubtedEvery is how often we ask the server about doubted writes.
	checkDoubtedEvery = time.Second
	// checkDoubtedWithin limits one check.
	checkDoubtedWithin = 2 * time.Second
)

// doubtedWrite is a write that may never be answered: its caller no longer waits, or the
// server that has it is perhaps not the primary any more.
type doubtedWrite struct {
	conn *pgconn.PgConn // in use until done is closed
	done <-chan struct{}
}

func (w doubtedWrite) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// sever closes the connection. If the server is still working on the write, it
// finishes it.
func (w doubtedWrite) sever() { _ = w.conn.Conn().Close() }

// doubtedWrites are those that have no answer yet. Each keeps its connection,
// so the size of the pool limits how many there are, here and on the server.
type doubtedWrites struct {
	mu     sync.Mutex
	all    map[doubtedWrite]struct{}
	stop   context.CancelFunc // stops the monitor; nil while there is none
	closed bool
	loops  sync.WaitGroup
}

// add takes a write, and starts the monitor if there is none.
func (d *doubtedWrites) add(db *DB, w doubtedWrite) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		w.sever()
		return
	}
	if d.all == nil {
		d.all = make(map[doubtedWrite]struct{})
	}
	d.all[w] = struct{}{}
	if d.stop == nil {
		var ctx context.Context
		ctx, d.stop = context.WithCancel(context.Background())
		d.loops.Go(func() { d.monitor(ctx, db) })
	}
}

// unanswered returns the writes without an answer. If there are none, the
// monitor ends.
func (d *doubtedWrites) unanswered() []doubtedWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.all, func(w doubtedWrite, _ struct{}) bool { return w.isDone() })
	if len(d.all) == 0 {
		d.stop()
		d.stop = nil
	}
	return slices.Collect(maps.Keys(d.all))
}

// close severs all connections and ends the monitor.
func (d *doubtedWrites) close() {
	d.mu.Lock()
	d.closed = true
	for w := range d.all {
		w.sever()
	}
	if d.stop != nil {
		d.stop()
	}
	d.mu.Unlock()
	d.loops.Wait()
}

// monitor severs the connections of doubted writes that the server is not working
// on. Either the answer was lost, or new connections now lead to another server. All
// pools then reconnect, because their other connections may have the same fault. A check
// that fails has waited long enough for the next one.
func (d *doubtedWrites) monitor(ctx context.Context, db *DB) {
	for pause := checkDoubtedEvery; ; {
		writes := d.unanswered()
		if len(writes) == 0 {
			return
		}
		select {
		case <-writes[0].done:
			continue // most end a moment after their caller has left
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		began := time.Now()
		working, err := db.working(ctx, writes)
		if err != nil {
			pause = checkDoubtedEvery - time.Since(began)
			continue
		}
		pause = checkDoubtedEvery
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
func (db *DB) working(ctx context.Context, writes []doubtedWrite) ([]uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, checkDoubtedWithin)
	defer cancel()
	conn, err := Connect(ctx, db.Reads.Config().ConnConfig.Copy())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	id := func(conn *pgconn.PgConn) int32 { return int32(conn.PID()) } //nolint:gosec // pg_stat_activity has the same type
	rows, err := conn.Query(ctx, sql.Text("at_work"), Column(writes, func(w doubtedWrite) int32 { return id(w.conn) }), id(conn.PgConn()))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (uint32, error) {
		pid, err := pgx.RowTo[int32](row)
		return uint32(pid), err //nolint:gosec // as above
	})
}

// broadcast wakes everybody who waits for something to happen.
type broadcast struct {
	mu   sync.Mutex
	wake chan struct{}
}

// next is closed when it happens the next time.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	return b.wake
}

func (b *broadcast) raise() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}
