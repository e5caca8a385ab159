package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// writeNotes saves what attempts have reported, one note each.
func (s *settler) writeNotes(notes []job.Report) {
	var values, logs []job.Report
	for _, n := range notes {
		if n.Progress != nil || n.Checkpoint != nil {
			values = append(values, n)
		}
		if n.Log != nil {
			logs = append(logs, n)
		}
	}
	if len(values) > 0 {
		s.save(values, "progress or checkpoint could not be saved", s.store.SaveProgress)
	}
	if len(logs) > 0 {
		s.save(logs, "log lines could not be saved", s.store.SaveLogs)
	}
}

// save writes the notes, one by one when one of them cannot be stored. A lost
// lease shows when the attempt is settled.
func (s *settler) save(notes []job.Report, failed string, verb func(context.Context, []job.Report) ([]job.Lease, error)) {
	_, err := s.untilAnswered(opNote, len(notes), func(ctx context.Context) ([]job.SettleResult, error) {
		_, err := verb(ctx, notes)
		return nil, err
	})
	switch {
	case err == nil:
	case len(notes) == 1:
		s.log.Warn(failed, slog.String("job_id", notes[0].JobID.String()), slog.Any("error", err))
	default:
		for i := range notes {
			s.save(notes[i:i+1], failed, verb)
		}
	}
}
