package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Logs returns what the attempts of a job have logged that the filter chooses,
// oldest first. Attempts that have logged nothing are left out; there are none
// of a job that does not exist.
func (s *Store) Logs(ctx context.Context, id job.ID, filter job.LogFilter) ([]job.AttemptLog, error) {
	number := pgtype.Int4{Int32: int32(filter.Number), Valid: filter.Number != 0}
	type row struct {
		Fence   int64
		Attempt int
		Lines   []byte
		Dropped int64
	}
	var found []row
	err := s.lookups.read(ctx, "logs", func(conn *pgxpool.Conn) (err error) {
		found, err = read(ctx, conn, logsSQL, pgx.RowToStructByName[row], uuid(id), number, filter.Limit)
		return translate("logs", err)
	})
	if err != nil {
		return nil, err
	}
	logs := make([]job.AttemptLog, len(found))
	for i, row := range found {
		log := job.AttemptLog{Number: row.Attempt, Fence: row.Fence, Dropped: row.Dropped}
		if err := json.Unmarshal(row.Lines, &log.Lines); err != nil {
			return nil, fmt.Errorf("logs: lines of job %s, fence %d: %w", id, row.Fence, err)
		}
		logs[len(found)-1-i] = log
	}
	return logs, nil
}
