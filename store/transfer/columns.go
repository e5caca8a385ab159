package transfer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// PostgreSQL takes no names of tables and columns as arguments, so the statements here are
// built. All others are files of store/sql.

// shape is what the database has of a table.
type shape struct {
	columns []string
	// key are the columns of the primary key; all of them for a table without one.
	key []string
}

type columnRow struct {
	TableName  string
	ColumnName string
	Place      int
}

// shapes are those of the tables that move.
func shapes(ctx context.Context, tx pgx.Tx) (map[string]shape, error) {
	rows, err := postgres.Rows(ctx, tx, "transfer_columns", pgx.RowToStructByName[columnRow], moved)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	columns, keys := make(map[string][]string), make(map[string]map[int]string)
	for _, r := range rows {
		columns[r.TableName] = append(columns[r.TableName], r.ColumnName)
		if r.Place > 0 {
			if keys[r.TableName] == nil {
				keys[r.TableName] = make(map[int]string)
			}
			keys[r.TableName][r.Place] = r.ColumnName
		}
	}
	found := make(map[string]shape, len(moved))
	for _, table := range moved {
		if len(columns[table]) == 0 {
			return nil, fmt.Errorf("the database has no table %s: bring its schema up to date with `orchestrator migrate up`", table)
		}
		s := shape{columns: columns[table]}
		for place := 1; keys[table][place] != ""; place++ {
			s.key = append(s.key, keys[table][place])
		}
		if s.key == nil {
			s.key = s.columns
		}
		found[table] = s
	}
	return found, nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

// read is the statement that writes a table to COPY, from the row with that number on.
func (s shape) read(table string, first int64) string {
	return fmt.Sprintf("copy (select %s from %s order by %s offset %d) to stdout",
		list(s.columns), quoted(table), list(s.key), first)
}

// write is the statement that reads rows of a table from COPY.
func (s shape) write(table string) string {
	return fmt.Sprintf("copy %s (%s) from stdin", quoted(table), list(s.columns))
}

func list(columns []string) string {
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = quoted(name)
	}
	return strings.Join(names, ", ")
}

func count(ctx context.Context, tx pgx.Tx, table string) (n int64, err error) {
	err = tx.QueryRow(ctx, "select count(*) from "+quoted(table)).Scan(&n)
	if err != nil {
		err = fmt.Errorf("count %s: %w", table, err)
	}
	return n, err
}

func schemaVersion(ctx context.Context, tx pgx.Tx) (int64, error) {
	found, err := postgres.Rows(ctx, tx, "transfer_version", pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("read the version of the schema: %w", err)
	}
	return found[0], nil
}

type sequenceRow struct {
	Name string
	Last int64
}

func sequences(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	found, err := postgres.Rows(ctx, tx, "transfer_sequences", pgx.RowToStructByName[sequenceRow])
	if err != nil {
		return nil, fmt.Errorf("read the sequences: %w", err)
	}
	last := make(map[string]int64, len(found))
	for _, s := range found {
		last[s.Name] = s.Last
	}
	return last, nil
}
