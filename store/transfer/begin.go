package transfer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// beginImport closes the database for an import, or finds one that was interrupted. It returns
// errImported if it finds one that was finished.
func beginImport(ctx context.Context, conn *pgx.Conn, cell job.Cell, file scanned) (*closure, map[string]shape, error) {
	begun, err := readClosure(ctx, conn)
	if err != nil {
		return nil, nil, err
	}
	var columns map[string]shape
	err = within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if begun == nil {
			if err := file.importedAlready(ctx, tx, cell); err != nil {
				return err
			}
		}
		if columns, err = compatible(ctx, tx, file.header); err != nil {
			return err
		}
		if err := sameCell(ctx, tx, file.header, cell); err != nil {
			return err
		}
		if begun != nil {
			return file.continues(begun)
		}
		begun = &closure{Export: file.header.Export, Reason: importing, SHA256: file.sha256}
		return closeEmpty(ctx, tx, *begun)
	})
	return begun, columns, err
}

// continues returns an error unless the ledger was closed for this import.
func (s scanned) continues(c *closure) error {
	switch {
	case c == nil:
		return errFinished
	case c.Reason != importing:
		return fmt.Errorf("this database cannot be imported into: %w", c.err())
	case c.Export != s.header.Export || c.SHA256 != s.sha256:
		return fmt.Errorf("this database has half of another file: %w; to start anew, drop the database", c.err())
	}
	return nil
}

// compatible returns what the database has of the tables, or an error if that is not what
// the file has.
func compatible(ctx context.Context, tx pgx.Tx, h Header) (map[string]shape, error) {
	columns, err := shapes(ctx, tx)
	if err != nil {
		return nil, err
	}
	has, err := schemaVersion(ctx, tx)
	switch {
	case err != nil:
		return nil, err
	case has != h.Schema:
		return nil, fmt.Errorf("the file has the schema %d, and the database %d: import with the version of the program that exported, "+
			"or export again after `orchestrator migrate up` there", h.Schema, has)
	}
	return columns, h.same(columns)
}

// cell is that of the ledger that was exported, if it was one.
func (h Header) cell() job.Cell {
	if h.Cell == nil {
		return job.Cell{}
	}
	return job.CellOf(*h.Cell)
}

// sameCell returns an error if the jobs of the file carry another cell than those of the
// database will, by itself or by the configuration. A ledger of no cell fits any database.
func sameCell(ctx context.Context, tx pgx.Tx, h Header, configured job.Cell) error {
	has, err := postgres.CellIn(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the cell: %w", err)
	}
	none := job.Cell{}
	switch of := h.cell(); {
	case configured != none && has != none && configured != has:
		return job.MatchCell(has, configured)
	case of == none:
		return nil
	case has != none && of != has:
		return fmt.Errorf("%w: the file is of cell %s, and the database is cell %s: a cell keeps its number wherever it moves; "+
			"import into a database of cell %s, or of none", job.ErrWrongCell, of, has, of)
	case configured != none && of != configured:
		return fmt.Errorf("%w: the file is of cell %s, and database.cell is %s: a cell keeps its number wherever it moves; "+
			"set database.cell to %s, or import the file of cell %s", job.ErrWrongCell, of, configured, of, configured)
	}
	return nil
}

// closeEmpty closes a database in which no row is to be lost.
func closeEmpty(ctx context.Context, tx pgx.Tx, c closure) error {
	if err := closeLedger(ctx, tx, c, "the ledger is closed: an import has not finished"); err != nil {
		return err
	}
	if err := run(ctx, tx, "transfer_pass", c.Export); err != nil {
		return err
	}
	if err := run(ctx, tx, "transfer_empty"); err != nil {
		return err
	}
	for _, table := range allTables() {
		rows, err := count(ctx, tx, table)
		if err != nil {
			return err
		}
		if rows > 0 && table != "goose_db_version" && table != "cell" {
			return fmt.Errorf("the database is not empty, as %s has rows (%d), and no import of this file was finished there: "+
				"import into a new database, on which only `orchestrator migrate up` was run", table, rows)
		}
	}
	return nil
}
