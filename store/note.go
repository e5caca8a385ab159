package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// SaveProgress saves progress and checkpoints of running attempts. It returns those
// that the caller no longer holds the lease of, for which nothing was written.
// Of several notes for one lease in a batch only one may be sent. If a value
// cannot be stored, nothing is, and the error is job.ErrBadData.
func (s *Store) SaveProgress(ctx context.Context, batch []job.Report) ([]job.Lease, error) {
	batch = byJob(batch)
	written, err := s.writeOnce(ctx, s.worker, noteSQL,
		column(batch, func(n job.Report) pgtype.UUID { return uuid(n.JobID) }),
		column(batch, func(n job.Report) pgtype.UUID { return uuid(n.ID) }),
		column(batch, func(n job.Report) pgtype.Text { return document(n.Progress) }),
		column(batch, func(n job.Report) pgtype.Text { return document(n.Checkpoint) }))
	if err != nil {
		return nil, translate("note", err)
	}
	return missing(batch, written), nil
}

// SaveLogs saves the logs of running attempts, each in place of what was saved
// before of the same attempt. Every note must have one; the rest of it is for
// SaveProgress. It returns and fails as SaveProgress does.
func (s *Store) SaveLogs(ctx context.Context, batch []job.Report) ([]job.Lease, error) {
	batch = byJob(batch)
	lines := make([]string, len(batch))
	for i, n := range batch {
		encoded, err := json.Marshal(n.Log.Lines)
		if err != nil {
			return nil, fmt.Errorf("keep logs: %w: %w", job.ErrBadData, err)
		}
		lines[i] = string(encoded)
	}
	written, err := s.writeOnce(ctx, s.worker, keepLogsSQL,
		column(batch, func(n job.Report) pgtype.UUID { return uuid(n.JobID) }),
		column(batch, func(n job.Report) pgtype.UUID { return uuid(n.ID) }),
		column(batch, func(n job.Report) int32 { return int32(n.Log.Number) }),
		lines,
		column(batch, func(n job.Report) int64 { return n.Log.Dropped }))
	if err != nil {
		return nil, translate("keep logs", err)
	}
	return missing(batch, written), nil
}

// byJob is the order in which everybody locks.
func byJob(batch []job.Report) []job.Report {
	batch = slices.Clone(batch)
	slices.SortFunc(batch, func(a, b job.Report) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	return batch
}

// missing are the leases that nothing was written under.
func missing(batch []job.Report, written map[[16]byte]struct{}) (lost []job.Lease) {
	for _, n := range batch {
		if _, ok := written[n.ID]; !ok {
			lost = append(lost, n.Lease)
		}
	}
	return lost
}
