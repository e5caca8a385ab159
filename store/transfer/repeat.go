package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// exportedAlready returns the report of a file that an earlier run has finished, if the ledger
// is still closed for that export, and so has not changed since. Otherwise the error says what
// the file is. It changes neither file nor ledger.
func exportedAlready(ctx context.Context, url, path string, note func(Progress)) (Report, error) {
	if at, err := os.Stat(path); err != nil || !at.Mode().IsRegular() {
		return Report{}, errors.Join(fmt.Errorf("%s exists; name a new file", path), err)
	}
	file, found, err := openFile(ctx, path, note)
	if ctx.Err() != nil {
		return Report{}, err
	}
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		return Report{}, fmt.Errorf("%s exists, and cannot be read (%w); name a new file", path, err)
	case err != nil:
		return Report{}, fmt.Errorf("%s exists, and is no complete export (%w); name a new file", path, err)
	}
	defer func() { _ = file.Close() }()
	conn, err := connect(ctx, url)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	closed, err := readClosure(ctx, conn)
	switch of := fmt.Sprintf("%s, closed at %s", found.header.Export, found.header.ClosedAt); {
	case err != nil:
		return Report{}, err
	case closed == nil:
		return Report{}, fmt.Errorf("%s exists, and is a complete export (%s), but the ledger of this database is open: "+
			"it was opened again since, or is another one; name a new file to export it", path, of)
	case closed.Reason == importing:
		return Report{}, closed.err()
	case closed.Export != found.header.Export:
		return Report{}, fmt.Errorf("%s exists, and is a complete export (%s), but the ledger of this database is closed for another (%s); name a new file",
			path, of, closed.Export)
	}
	r := found.report(path, found.header.Rows())
	r.Already = true
	return r, syncDirectory(path) // which the earlier run may not have come to
}

// errImported says that an earlier run has finished the import of the file.
var errImported = errors.New("the file is imported already")

// mark is the comment on the table jobs of a ledger that was imported from the file: so it needs
// no table, and moves with a dump and not with an export.
func (s scanned) mark() string { return "holdfast: imported from the file with the sha256 " + s.sha256 }

// markImported is of the transaction that opens the ledger.
func (s scanned) markImported(ctx context.Context, tx pgx.Tx) error {
	comment, err := postgres.Rows(ctx, tx, "transfer_comment", pgx.RowTo[string], s.mark())
	if err == nil {
		_, err = tx.Exec(ctx, comment[0])
	}
	if err != nil {
		return fmt.Errorf("mark the ledger as imported: %w", err)
	}
	return nil
}

// importedAlready returns errImported if the open ledger has the mark of the file. The file may
// be of an earlier schema by now, but not of another cell.
func (s scanned) importedAlready(ctx context.Context, tx pgx.Tx, cell job.Cell) error {
	found, err := postgres.Rows(ctx, tx, "transfer_mark", pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the mark of an import: %w", err)
	}
	if found[0] != s.mark() {
		return nil
	}
	if err := sameCell(ctx, tx, s.header, cell); err != nil {
		return err
	}
	return errImported
}
