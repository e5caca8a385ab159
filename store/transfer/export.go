package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Progress is how far an export or import is.
type Progress struct {
	// Step is what is being done.
	Step string
	// Rows are those done in this step, Of all of them.
	Rows, Of int64
}

// Steps.
const (
	Checking  = "checking the file"
	Reading   = "reading the database"
	Writing   = "writing the database"
	Analyzing = "gathering statistics"
	Comparing = "comparing the database with the file"
)

// Report is what was exported or imported.
type Report struct {
	File   string `json:"file"`
	Export string `json:"export"`
	Schema int64  `json:"schema"`
	// Already says that an earlier run had done all of it, and this one has changed nothing.
	Already bool `json:"already"`
	// Rows are all of the file, Jobs those of the ledger, Resumed those that an earlier run
	// had done.
	Rows    int64            `json:"rows"`
	Jobs    int64            `json:"jobs"`
	Resumed int64            `json:"resumed"`
	Bytes   int64            `json:"bytes"`
	SHA256  string           `json:"sha256"`
	Tables  map[string]int64 `json:"tables"`
}

func report(path string, h Header, done *tally, resumed int64) Report {
	r := Report{
		File: path, Export: h.Export, Schema: h.Schema, Rows: h.Rows(), Resumed: resumed,
		Bytes: done.bytes, Tables: make(map[string]int64, len(h.Tables)),
	}
	for _, table := range h.Tables {
		r.Tables[table.Name] = table.Rows
	}
	r.Jobs = r.Tables["jobs"]
	return r
}

// unfinished is the end of the name of a file that an export still writes.
const unfinished = ".partial"

// Export closes the ledger and writes it to a new file. If it is interrupted, it goes on
// when it is called again with the same path; until the file is whole, it is named
// path.partial. If the file is there, and whole, and of this ledger as it is, there is nothing
// left to do; any other file is refused. Export refuses a ledger on which somebody works, and
// one that another export or import is working on.
func Export(ctx context.Context, url, path string, note func(Progress)) (Report, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			return exportedAlready(ctx, url, path, note)
		}
		return Report{}, err
	}
	file, err := openPartial(path + unfinished)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }()
	conn, err := connectAlone(ctx, url)
	if err != nil {
		return Report{}, errors.Join(err, discardEmpty(file))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := closeForExport(ctx, conn); err != nil {
		return Report{}, errors.Join(err, discardEmpty(file))
	}
	var done Report
	err = within(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		done, err = writeFile(ctx, tx, file, note)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	if err := keep(file, path); err != nil {
		return Report{}, err
	}
	done.File = path
	return done, nil
}

// openPartial opens the file for one process.
func openPartial(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // payloads may be secret
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another export writes %s: %w", path, err)
	}
	return file, nil
}

// discardEmpty removes a file that nothing was written to.
func discardEmpty(file *os.File) error {
	if at, err := file.Stat(); err != nil || at.Size() > 0 {
		return err
	}
	return os.Remove(file.Name())
}

// keep makes the file durable under its own name.
func keep(file *os.File, path string) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDirectory(path)
}

// syncDirectory makes the name of a file durable.
func syncDirectory(path string) error {
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return directory.Sync()
}

type busyRow struct {
	Leases int64
	Alive  []string
}

// closeForExport closes the ledger unless an earlier export has.
func closeForExport(ctx context.Context, conn *pgx.Conn) error {
	found, err := readClosure(ctx, conn)
	switch {
	case err != nil:
		return err
	case found != nil && found.Reason == importing:
		return found.err()
	case found != nil:
		return nil
	}
	c := closure{Export: strings.ToLower(rand.Text()), Reason: exported}
	message := "the ledger is closed: it was exported at " + time.Now().UTC().Format(time.RFC3339)
	return within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := closeLedger(ctx, tx, c, message); err != nil {
			return err
		}
		busy, err := postgres.Rows(ctx, tx, "transfer_busy", pgx.RowToStructByName[busyRow])
		switch {
		case err != nil:
			return fmt.Errorf("look for workers: %w", err)
		case len(busy[0].Alive) > 0:
			return fmt.Errorf("orchestrators work on the ledger; stop them first (one that crashed counts as alive for a while): %s",
				strings.Join(busy[0].Alive, ", "))
		case busy[0].Leases > 0:
			return fmt.Errorf("jobs have leases of orchestrators that crashed (%d); start an orchestrator until it has taken them over, "+
				"and stop it again with SIGTERM, which gives back what it cannot finish", busy[0].Leases)
		}
		return audit(ctx, tx)
	})
}

// makeHeader describes the ledger that the transaction sees.
func makeHeader(ctx context.Context, tx pgx.Tx) (Header, map[string]shape, error) {
	h := Header{Format: format, Version: version}
	found, err := readClosure(ctx, tx)
	if err != nil {
		return h, nil, err
	}
	if found == nil || found.Reason != exported {
		return h, nil, errors.New("the ledger was opened again while it was exported")
	}
	h.Export, h.ClosedAt = found.Export, found.ClosedAt.UTC().Format(time.RFC3339Nano)
	if h.Schema, err = schemaVersion(ctx, tx); err != nil {
		return h, nil, err
	}
	cell, err := postgres.CellIn(ctx, tx)
	if err != nil {
		return h, nil, fmt.Errorf("read the cell: %w", err)
	}
	if number, some := cell.Number(); some {
		h.Cell = &number
	}
	if h.Sequences, err = sequences(ctx, tx); err != nil {
		return h, nil, err
	}
	columns, err := shapes(ctx, tx)
	if err != nil {
		return h, nil, err
	}
	for _, table := range moved {
		rows, err := count(ctx, tx, table)
		if err != nil {
			return h, nil, err
		}
		h.Tables = append(h.Tables, Table{Name: table, Columns: columns[table].columns, Rows: rows})
	}
	return h, columns, nil
}

// writeFile writes what the file has not yet.
func writeFile(ctx context.Context, tx pgx.Tx, file *os.File, note func(Progress)) (Report, error) {
	header, columns, err := makeHeader(ctx, tx)
	if err != nil {
		return Report{}, err
	}
	done, err := goOn(ctx, file, control(header), note)
	if err != nil {
		return Report{}, err
	}
	resumed := done.all()
	w := &writer{to: bufio.NewWriterSize(file, 1<<20), done: done, note: note, of: header.Rows()}
	if done.bytes == 0 {
		if err := w.line(control(header)); err != nil {
			return Report{}, err
		}
	}
	if _, err := tx.Exec(ctx, byIndex); err != nil {
		return Report{}, err
	}
	for _, table := range header.Tables {
		if done.rows[table.Name] == table.Rows {
			continue
		}
		err := eachRow(ctx, tx, table.Name, columns[table.Name], done.rows[table.Name], func(row []byte) error { return w.row(table.Name, row) })
		if err == nil {
			err = w.endSegment()
		}
		if err != nil {
			return Report{}, w.keep(err)
		}
	}
	end, err := done.ends(header)
	if err != nil {
		return Report{}, err
	}
	if err := w.keep(w.line(control(end))); err != nil {
		return Report{}, err
	}
	r := report("", header, done, resumed)
	r.SHA256 = end.SHA256
	return r, nil
}

// goOn returns what an earlier run has written, and moves to its end.
func goOn(ctx context.Context, file *os.File, header []byte, note func(Progress)) (*tally, error) {
	found, err := scan(ctx, file, func(rows, of int64) { note(Progress{Checking, rows, of}) })
	if ctx.Err() != nil {
		return nil, err
	}
	good := found.good
	if good == nil {
		if err := startsLike(file, append(header, '\n')); err != nil {
			return nil, err
		}
		good = newTally()
	} else if !bytes.Equal(found.headerLine, header) {
		return nil, fmt.Errorf("%s is of another export (%s, %s): remove it", file.Name(), found.header.Export, found.header.ClosedAt)
	}
	if err := file.Truncate(good.bytes); err != nil {
		return nil, err
	}
	_, err = file.Seek(good.bytes, io.SeekStart)
	return good, err
}

// startsLike returns an error unless the file is the beginning of the header: anything else
// is not ours to replace.
func startsLike(file *os.File, header []byte) error {
	start := make([]byte, len(header)+1)
	n, err := file.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.HasPrefix(header, start[:n]) {
		return fmt.Errorf("%s is not of this export: remove it", file.Name())
	}
	return nil
}

// writer appends to a file.
type writer struct {
	to   *bufio.Writer
	done *tally
	note func(Progress)
	of   int64

	// The segment that is being written.
	rows, bytes int64
}

// keep writes what is still in memory, so that it need not be read again, and returns what
// has gone wrong. Once the file cannot be written, each attempt returns the same error.
func (w *writer) keep(err error) error {
	if failed := w.to.Flush(); failed != nil && !errors.Is(err, failed) {
		return errors.Join(err, failed)
	}
	return err
}

func (w *writer) line(text []byte) error {
	w.done.line(text)
	return w.put(text)
}

func (w *writer) put(text []byte) error {
	if _, err := w.to.Write(text); err != nil {
		return err
	}
	return w.to.WriteByte('\n')
}

func (w *writer) row(table string, row []byte) error {
	if w.rows == 0 {
		if err := w.line(control(segmentHead{Table: table, First: w.done.rows[table]})); err != nil {
			return err
		}
	}
	w.done.row(table, row)
	w.rows++
	w.bytes += int64(len(row))
	if err := w.put(row); err != nil {
		return err
	}
	if w.rows == segmentRows || w.bytes >= segmentBytes {
		return w.endSegment()
	}
	return nil
}

func (w *writer) endSegment() error {
	if w.rows == 0 {
		return nil
	}
	tail := segmentTail{Rows: w.rows, SHA256: w.done.sha256()}
	w.rows, w.bytes = 0, 0
	w.note(Progress{Reading, w.done.all(), w.of})
	return w.line(control(tail))
}
