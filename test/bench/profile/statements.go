package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statement is what a statement costs PostgreSQL.
type statement struct {
	name string
	// calls is how often it ran, and rows what each call brought or changed.
	calls int64
	rows  float64
	// microseconds is how long it took per job.
	microseconds float64
}

// statements reads what the statements of the store have cost. Statements of the same file are
// added up, and those left out that work off nothing: they fill the queue.
func statements(ctx context.Context, conn *pgx.Conn, jobs int) ([]statement, error) {
	nameOf, err := names()
	if err != nil {
		return nil, err
	}
	rows, _ := conn.Query(ctx, "select query, calls, rows, total_exec_time + total_plan_time from pg_stat_statements")
	byName := make(map[string]*statement)
	var text string
	var calls, found int64
	var milliseconds float64
	_, err = pgx.ForEachRow(rows, []any{&text, &calls, &found, &milliseconds}, func() error {
		name := nameOf[firstLine(text)]
		if name == "" || strings.HasPrefix(name, "submit") {
			return nil
		}
		if byName[name] == nil {
			byName[name] = &statement{name: name}
		}
		one := byName[name]
		one.calls += calls
		one.rows += float64(found)
		one.microseconds += 1000 * milliseconds / float64(jobs)
		return nil
	})
	all := make([]statement, 0, len(byName))
	for one := range maps.Values(byName) {
		one.rows /= float64(one.calls)
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b statement) int {
		return cmp.Or(cmp.Compare(b.microseconds, a.microseconds), cmp.Compare(a.name, b.name))
	})
	return all, err
}

// statementFiles are the statements of the store, from the root of the checkout.
const statementFiles = "store/sql/*.sql"

// names maps the first line of each statement to its name. PostgreSQL replaces constants in the
// rest, and keeps the first line, which is a comment.
func names() (map[string]string, error) {
	files, err := filepath.Glob(statementFiles)
	if err == nil && len(files) == 0 {
		err = errors.New("there is no " + statementFiles)
	}
	byLine := make(map[string]string, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		byLine[firstLine(string(text))] = strings.TrimSuffix(filepath.Base(file), ".sql")
	}
	return byLine, err
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
