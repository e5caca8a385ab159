package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// SaveProgress saves progress and checkpoints of running attempts. It returns the
// leases that the caller no longer holds, for which it wrote nothing. A batch may
// contain only one report for each lease. If a value cannot be stored, nothing is
// written, and the error is job.ErrBadData.
func (s *Store) SaveProgress(ctx context.Context, batch []job.Report) ([]job.Lease, error) {
	batch = byJob(batch)
	written, err := s.changedIDs(ctx, "save_progress", append(leaseColumns(batch, leaseOfReport),
		postgres.Column(batch, func(r job.Report) pgtype.Text { return postgres.Document(r.Progress) }),
		postgres.Column(batch, func(r job.Report) pgtype.Text { return postgres.Document(r.Checkpoint) }))...)
	return missing(batch, written, err)
}

// SaveLogs saves the logs of running attempts. Each replaces what was saved before
// for the same attempt. Every report must have a log; SaveLogs ignores the rest of
// it. It returns and fails as SaveProgress does.
func (s *Store) SaveLogs(ctx context.Context, batch []job.Report) ([]job.Lease, error) {
	batch = byJob(batch)
	lines := make([]string, len(batch))
	for i, r := range batch {
		encoded, err := json.Marshal(r.Log.Lines)
		if err != nil {
			return nil, fmt.Errorf("save logs: %w: %w", job.ErrBadData, err)
		}
		lines[i] = string(encoded)
	}
	written, err := s.changedIDs(ctx, "save_logs", append(leaseColumns(batch, leaseOfReport),
		postgres.Column(batch, func(r job.Report) int32 { return int32(r.Log.Number) }),
		lines,
		postgres.Column(batch, func(r job.Report) int64 { return r.Log.Dropped }))...)
	return missing(batch, written, err)
}

func leaseOfReport(r job.Report) job.Lease { return r.Lease }

// byJob returns the batch in the order in which every statement takes its locks.
func byJob(batch []job.Report) []job.Report {
	batch = slices.Clone(batch)
	slices.SortFunc(batch, func(a, b job.Report) int { return bytes.Compare(a.JobID[:], b.JobID[:]) })
	return batch
}

// missing returns the leases under which nothing was written.
func missing(batch []job.Report, written map[[16]byte]struct{}, err error) (lost []job.Lease, _ error) {
	if err != nil {
		return nil, err
	}
	for _, r := range batch {
		if _, ok := written[r.ID]; !ok {
			lost = append(lost, r.Lease)
		}
	}
	return lost, nil
}
