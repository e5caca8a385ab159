// Package fullledger fills a database with jobs in every state, and every other table with
// what stands beside them, for tests that move or compare whole ledgers.
package fullledger

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed jobs.sql
var jobs string

//go:embed others.sql
var others string

// chunk is how many jobs one transaction writes.
const chunk = 100_000

// Fill writes n jobs into an empty database with the schema: as many in each state but
// succeeded, which has four tenths, and none running. The ledger and its lists agree. The
// user must be a superuser, because jobs are born in their last state.
func Fill(ctx context.Context, url string, n int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "set session_replication_role = replica; set jit = off"); err != nil {
		return err
	}
	for first := 1; first <= n; first += chunk {
		text := strings.NewReplacer("$first", fmt.Sprint(first), "$last", fmt.Sprint(min(first+chunk-1, n))).Replace(jobs)
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("jobs from %d on: %w", first, err)
		}
	}
	if _, err := conn.Exec(ctx, others); err != nil {
		return fmt.Errorf("other tables: %w", err)
	}
	return nil
}
