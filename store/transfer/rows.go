package transfer

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// rowReader receives what COPY writes, and calls each with every row as a line of a file.
// The line is valid until each returns.
type rowReader struct {
	table string
	each  func(line []byte) error
	// failed is the error of each.
	failed error
	part   []byte // of a row that has not arrived whole
	line   []byte
}

// Write implements io.Writer.
func (r *rowReader) Write(data []byte) (int, error) {
	n := len(data)
	for {
		row, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			r.part = append(r.part, row...)
			return n, nil
		}
		if len(r.part) > 0 {
			r.part = append(r.part, row...)
			row = r.part
		}
		var err error
		if r.line, err = appendJSON(r.line[:0], row); err != nil {
			return 0, fmt.Errorf("a row of %s: %w", r.table, err)
		}
		if len(r.line) > longestLine {
			return 0, fmt.Errorf("a row of %s has %d bytes; at most %d can be moved", r.table, len(r.line), longestLine)
		}
		if r.failed = r.each(r.line); r.failed != nil {
			return 0, r.failed
		}
		r.part, data = r.part[:0], rest
	}
}

// eachRow reads a table from the row with that number on. It returns an error of each as it is.
func eachRow(ctx context.Context, tx pgx.Tx, table string, s shape, first int64, each func(line []byte) error) error {
	reader := &rowReader{table: table, each: each}
	_, err := tx.Conn().PgConn().CopyTo(ctx, reader, s.read(table, first))
	switch {
	case reader.failed != nil:
		return reader.failed
	case err != nil:
		return fmt.Errorf("read %s: %w", table, err)
	}
	return nil
}
