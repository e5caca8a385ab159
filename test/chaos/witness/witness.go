// Package witness reads every committed change of the product's tables by logical
// decoding (test_decoding), past the product. It continues on each new primary, and
// reads the rest of each old one.
package witness

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

const (
	slot = "chaos_witness"
	// pause is how long the witness waits when there is nothing to read.
	pause = 300 * time.Millisecond
	// portion is how many lines it reads at once, or a transaction if that has more.
	portion = 5000
	// patience bounds each reading.
	patience = 5 * time.Minute
)

// Witness writes one file for each generation, and Close joins them.
type Witness struct {
	dir    string
	tables map[string]bool
	log    *slog.Logger

	reading sync.Mutex // held while a slot is read
	mu      sync.Mutex
	current *generation
	all     []*generation
}

// generation is what is known of one primary.
type generation struct {
	number int
	url    string
	lines  *history.Lines[history.Change]
	path   string
	last   history.LSN // what was read
}

// New returns a witness that writes to the directory of a run.
func New(dir string, log *slog.Logger) *Witness {
	w := &Witness{dir: dir, tables: make(map[string]bool), log: log}
	for _, table := range history.Tables() {
		w.tables[table] = true
	}
	return w
}

// Begin starts a generation: nobody else may write to the server meanwhile.
func (w *Witness) Begin(ctx context.Context, url string, number int, at history.LSN) error {
	g := &generation{number: number, url: url, path: filepath.Join(w.dir, fmt.Sprintf("witness-%04d.part", number))}
	var err error
	if g.lines, err = history.Create[history.Change](g.path); err != nil {
		return err
	}
	w.mu.Lock()
	w.all = append(w.all, g)
	w.mu.Unlock()
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "select pg_create_logical_replication_slot($1, 'test_decoding')", slot); err != nil {
		return err
	}
	if number > 0 {
		if err := g.lines.Append(history.Change{Generation: number, Op: history.Promoted, LSN: at}); err != nil {
			return err
		}
	}
	err = rows(ctx, conn, func(table string, row history.Row) error {
		return g.lines.Append(history.Change{Generation: number, Op: history.Snapshot, LSN: at, Table: table, Row: row})
	})
	w.mu.Lock()
	w.current = g
	w.mu.Unlock()
	return err
}

// Follow reads the changes of the present primary until ctx ends. Readings that fail are
// repeated.
func (w *Witness) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		g := w.current
		w.mu.Unlock()
		n, err := w.read(ctx, g)
		if err != nil && ctx.Err() == nil {
			w.log.Debug("the witness could not read", "error", err)
		}
		if n < portion {
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// Drain reads what is left of a generation, at what may be the new address of its
// server, and drops its slot.
func (w *Witness) Drain(ctx context.Context, url string, number int) error {
	w.mu.Lock()
	i := slices.IndexFunc(w.all, func(g *generation) bool { return g.number == number })
	g := w.all[i]
	g.url = url
	w.mu.Unlock()
	if err := w.readAll(ctx, g); err != nil {
		return err
	}
	conn, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, "select pg_drop_replication_slot($1)", slot)
	return err
}

// End reads what is left of the last generation, writes the last rows, and joins the
// files.
func (w *Witness) End(ctx context.Context) error {
	if err := w.readAll(ctx, w.current); err != nil {
		return err
	}
	conn, err := connect(ctx, w.current.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	final, err := history.Create[history.FinalRow](filepath.Join(w.dir, history.FinalFile))
	if err != nil {
		return err
	}
	err = rows(ctx, conn, func(table string, row history.Row) error {
		return final.Append(history.FinalRow{Table: table, Row: row})
	})
	if err != nil {
		return err
	}
	if err := final.Close(); err != nil {
		return err
	}
	return w.join()
}

func (w *Witness) join() error {
	whole, err := os.Create(filepath.Join(w.dir, history.WitnessFile))
	if err != nil {
		return err
	}
	for _, g := range w.all {
		if err := g.lines.Close(); err != nil {
			return err
		}
		part, err := os.Open(g.path)
		if err != nil {
			return err
		}
		_, err = io.Copy(whole, part)
		_ = part.Close()
		if err != nil {
			return err
		}
		if err := os.Remove(g.path); err != nil {
			return err
		}
	}
	return whole.Close()
}

// readAll reads what was committed before it was called. Others may hold the slot for a moment.
func (w *Witness) readAll(ctx context.Context, g *generation) error {
	for {
		n, err := w.read(ctx, g)
		switch {
		case err == nil && n < portion:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("generation %d: %w (%w)", g.number, ctx.Err(), err)
		case err != nil:
			w.log.Debug("the witness could not read", "error", err)
			time.Sleep(pause)
		}
	}
}

// read reads a portion of a generation and returns how many lines it had. What was read
// is only forgotten by the server when it is written.
func (w *Witness) read(ctx context.Context, g *generation) (int, error) {
	w.reading.Lock()
	defer w.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := connect(ctx, g.url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	lines, err := conn.Query(ctx, `select lsn::text, xid::text::bigint, data from pg_logical_slot_peek_changes($1, null, $2,
		'include-timestamp', 'on', 'skip-empty-xacts', 'off')`, slot, portion)
	if err != nil {
		return 0, err
	}
	var at, data string
	var xid int64
	var pending []history.Change
	var problem error
	n := 0
	done := g.last
	_, err = pgx.ForEachRow(lines, []any{&at, &xid, &data}, func() error {
		n++
		if !strings.HasPrefix(data, "COMMIT") {
			found, ok, err := change(data, w.tables)
			if ok {
				pending = append(pending, found)
			}
			return err
		}
		lsn, err := history.ParseLSN(at)
		if err != nil {
			return err
		}
		if lsn > done { // else the server was killed before it forgot this
			if problem = g.commit(pending, lsn, uint32(xid), data); problem != nil { //nolint:gosec // an xid
				return problem
			}
			done = lsn
		}
		pending = pending[:0]
		return nil
	})
	g.last = done
	if err != nil || n == 0 {
		return 0, err
	}
	if err := g.lines.Flush(); err != nil {
		return 0, err
	}
	_, err = conn.Exec(ctx, "select pg_replication_slot_advance($1, $2::text::pg_lsn)", slot, done.String())
	return n, err
}

func (g *generation) commit(changes []history.Change, lsn history.LSN, xid uint32, line string) error {
	at, err := committedAt(line)
	if err != nil {
		return err
	}
	for _, c := range changes {
		c.Generation, c.LSN, c.XID, c.Committed = g.number, lsn, xid, at
		if err := g.lines.Append(c); err != nil {
			return err
		}
	}
	return nil
}

// connect opens a session whose times are in UTC.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["timezone"], cfg.RuntimeParams["datestyle"] = "UTC", "ISO"
	cfg.RuntimeParams["application_name"] = "chaos witness"
	return pgx.ConnectConfig(ctx, cfg)
}

// rows passes all rows of the witnessed tables on, as text.
func rows(ctx context.Context, conn *pgx.Conn, each func(table string, row history.Row) error) error {
	for _, table := range history.Tables() {
		results, err := conn.PgConn().Exec(ctx, "select * from "+table).ReadAll()
		if err != nil {
			return err
		}
		for _, result := range results {
			for _, values := range result.Rows {
				row := make(history.Row)
				for i, value := range values {
					if name := result.FieldDescriptions[i].Name; value != nil && !unjudged[name] {
						row[name] = string(value)
					}
				}
				if err := each(table, row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
