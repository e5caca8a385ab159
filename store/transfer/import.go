package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Read checks a whole file and changes nothing.
func Read(ctx context.Context, path string, note func(Progress)) (Report, error) {
	file, found, err := openFile(ctx, path, note)
	if err != nil {
		return Report{}, err
	}
	return found.report(path, 0), file.Close()
}

// Import writes a file into an empty database that has the schema of the file. The file is
// checked first. If Import is interrupted, it goes on when it is called again with the
// same file; if an earlier call was done, it changes nothing. Until it is done, the database
// refuses everybody else's changes, and all other imports and exports.
//
// The cell is the one that the configuration says the database is, if any: another file, or
// another database, is refused.
func Import(ctx context.Context, url string, cell job.Cell, path string, note func(Progress)) (Report, error) {
	file, found, err := openFile(ctx, path, note)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = file.Close() }()
	conn, err := connectAlone(ctx, url)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	i, err := newImporter(ctx, conn, cell, file, found, note)
	if errors.Is(err, errImported) {
		r := found.report(path, found.header.Rows())
		r.Already = true
		return r, nil
	}
	if err != nil {
		return Report{}, err
	}
	resumed := i.rows
	if err := i.write(ctx); err != nil {
		return Report{}, err
	}
	if err := i.analyze(ctx); err != nil {
		return Report{}, err
	}
	if err := i.finish(ctx); err != nil {
		return Report{}, err
	}
	return found.report(path, resumed), nil
}

// report is of a whole file.
func (s scanned) report(path string, resumed int64) Report {
	r := report(path, s.header, s.whole, resumed)
	r.SHA256 = s.sha256
	return r
}

func openFile(ctx context.Context, path string, note func(Progress)) (*os.File, scanned, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, scanned{}, err
	}
	if at, err := file.Stat(); err == nil && !at.Mode().IsRegular() {
		return nil, scanned{}, errors.Join(fmt.Errorf("%s is not a regular file: it is read twice, once to check it", path), file.Close())
	}
	found, err := scan(ctx, file, func(rows, of int64) { note(Progress{Checking, rows, of}) })
	switch {
	case err == nil:
		return file, found, nil
	case ctx.Err() == nil:
		err = fmt.Errorf("%s, %w", path, err)
	}
	return nil, scanned{}, errors.Join(err, file.Close())
}

// importer writes a file into a database.
type importer struct {
	conn    *pgx.Conn
	file    *os.File
	found   scanned
	columns map[string]shape
	note    func(Progress)
	// How much is in.
	bytes, rows int64
}

func newImporter(
	ctx context.Context, conn *pgx.Conn, cell job.Cell, file *os.File, found scanned, note func(Progress),
) (*importer, error) {
	begun, columns, err := beginImport(ctx, conn, cell, found)
	if err != nil {
		return nil, err
	}
	i := &importer{conn: conn, file: file, found: found, columns: columns, note: note, bytes: begun.Bytes, rows: begun.Rows}
	if i.bytes == 0 {
		i.bytes = int64(len(found.headerLine)) + 1
	}
	return i, nil
}

// errFinished is for an import that has lost its session's lock, as through a pooler.
var errFinished = errors.New("the import is done: another one has finished it")

// write writes the segments that are not in yet, each in a transaction.
func (i *importer) write(ctx context.Context) error {
	if _, err := i.file.Seek(i.bytes, io.SeekStart); err != nil {
		return err
	}
	source := newLines(i.file)
	for i.rows < i.found.header.Rows() {
		i.note(Progress{Writing, i.rows, i.found.header.Rows()})
		line, err := source.next()
		if err != nil {
			return fmt.Errorf("the file was changed meanwhile: %w", err)
		}
		var head segmentHead
		if err := strictly(line, &head); err != nil {
			return errors.New("the file was changed meanwhile: a segment does not begin where it did")
		}
		s := &segment{source: source, columns: len(i.columns[head.Table].columns), bytes: int64(len(line)) + 1}
		if err := within(ctx, i.conn, pgx.TxOptions{}, func(tx pgx.Tx) error { return i.writeSegment(ctx, tx, head.Table, s) }); err != nil {
			return fmt.Errorf("write %s from row %d on: %w", head.Table, head.First, err)
		}
		i.bytes, i.rows = i.bytes+s.bytes, i.rows+s.rows
	}
	return nil
}

// writeSegment also writes how much is in. The row of that is locked, so two imports never
// write the same segment, whatever has become of the lock of their sessions.
func (i *importer) writeSegment(ctx context.Context, tx pgx.Tx, table string, s *segment) error {
	at, err := postgres.Rows(ctx, tx, "transfer_place", pgx.RowTo[int64], i.found.header.Export)
	switch {
	case answers(err, undefinedTable):
		return errFinished
	case err != nil:
		return err
	case len(at) != 1 || at[0] != i.bytes && (at[0] != 0 || i.rows != 0):
		return errors.New("another import has written to the database meanwhile; run the command again when it is done")
	}
	if err := run(ctx, tx, "transfer_pass", i.found.header.Export); err != nil {
		return err
	}
	if table == "jobs" {
		if err := run(ctx, tx, "transfer_allow_births"); err != nil {
			return err
		}
	}
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, s, i.columns[table].write(table)); err != nil {
		return err
	}
	if table == "jobs" {
		if err := run(ctx, tx, "transfer_check_births"); err != nil {
			return err
		}
	}
	return run(ctx, tx, "transfer_advance", i.found.header.Export, i.bytes+s.bytes, i.rows+s.rows)
}

// segment is the rest of a segment, as COPY reads it.
type segment struct {
	source  *lines
	columns int
	ready   []byte
	buffer  []byte
	ended   bool
	// How many bytes of the file and rows were read.
	bytes, rows int64
}

// Read implements io.Reader.
func (s *segment) Read(to []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(to, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// fill reads the next line.
func (s *segment) fill() error {
	line, err := s.source.next()
	if err != nil {
		return fmt.Errorf("the file was changed meanwhile: %w", err)
	}
	s.bytes += int64(len(line)) + 1
	if len(line) > 0 && line[0] == '{' {
		var tail segmentTail
		if err := strictly(line, &tail); err != nil || tail.Rows != s.rows {
			return errors.New("the file was changed meanwhile: a segment does not end where it did")
		}
		s.ended = true
		return nil
	}
	columns := 0
	if s.buffer, columns, err = appendCopy(s.buffer[:0], line); err != nil {
		return fmt.Errorf("row %d of the segment: %w", s.rows+1, err)
	}
	if columns != s.columns {
		return fmt.Errorf("row %d of the segment has %d columns, and the table %d", s.rows+1, columns, s.columns)
	}
	s.rows++
	s.ready = s.buffer
	return nil
}

// analyze gathers statistics, so that the first orchestrator plans well.
func (i *importer) analyze(ctx context.Context) error {
	for n, table := range moved {
		i.note(Progress{Analyzing, int64(n), int64(len(moved))})
		err := within(ctx, i.conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "analyze "+quoted(table))
			return err
		})
		if err != nil {
			return fmt.Errorf("analyze %s: %w", table, err)
		}
	}
	return nil
}

// finish opens the ledger, if the database has exactly the rows of the file.
func (i *importer) finish(ctx context.Context) error {
	return within(ctx, i.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if err := i.lockClosure(ctx, tx); err != nil {
			return err
		}
		if err := audit(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, byIndex); err != nil {
			return err
		}
		seen := newTally()
		for _, table := range i.found.header.Tables {
			i.note(Progress{Comparing, seen.lines, i.found.header.Rows()})
			err := eachRow(ctx, tx, table.Name, i.columns[table.Name], 0, func(row []byte) error {
				if seen.row(table.Name, row); seen.lines%10_000 == 0 {
					i.note(Progress{Comparing, seen.lines, i.found.header.Rows()})
				}
				return nil
			})
			if err != nil {
				return err
			}
			if seen.rows[table.Name] != table.Rows || seen.digests[table.Name] != i.found.digests[table.Name] {
				return fmt.Errorf("the database has other rows in %s than the file: drop the database, and import into a new one", table.Name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(i.found.header.Sequences)) {
			last := i.found.header.Sequences[name]
			if last == 0 {
				continue
			}
			if err := run(ctx, tx, "transfer_set_sequence", quoted(name), last); err != nil {
				return fmt.Errorf("set the sequence %s: %w", name, err)
			}
		}
		if err := openLedger(ctx, tx); err != nil {
			return fmt.Errorf("open the ledger: %w", err)
		}
		if err := i.found.markImported(ctx, tx); err != nil {
			return err
		}
		if cell := i.found.header.cell(); cell != (job.Cell{}) {
			if _, err := postgres.TakeCellIn(ctx, tx, cell); err != nil {
				return fmt.Errorf("write the cell: %w", err)
			}
		}
		return nil
	})
}

// lockClosure comes before the transaction reads anything, so that it sees what another
// import has done. After the comparison, it would be too late: sequences that were set stay so.
func (i *importer) lockClosure(ctx context.Context, tx pgx.Tx) error {
	err := run(ctx, tx, "transfer_lock_closure")
	if answers(err, undefinedTable) {
		return errFinished
	}
	if err != nil {
		return fmt.Errorf("become the one who opens the ledger: %w", err)
	}
	found, err := readClosure(ctx, tx)
	if err != nil {
		return err
	}
	return i.found.continues(found)
}
