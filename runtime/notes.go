package runtime

import (
	"context"
	"log/slog"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// writeNotes saves the last progress and checkpoint of each attempt.
func (s *settler) writeNotes(batch []write) {
	merged := make(map[job.LeaseID]*job.Note)
	for _, w := range batch {
		if w.note == nil {
			continue
		}
		note, ok := merged[w.note.ID]
		if !ok {
			merged[w.note.ID] = w.note
			continue
		}
		if w.note.Progress != nil {
			note.Progress = w.note.Progress
		}
		if w.note.Checkpoint != nil {
			note.Checkpoint = w.note.Checkpoint
		}
	}
	if len(merged) == 0 {
		return
	}
	notes := make([]job.Note, 0, len(merged))
	for _, note := range merged {
		notes = append(notes, *note)
	}
	s.save(notes, "progress or checkpoint could not be saved", s.store.Note)
}

// save writes the notes, one by one when one of them cannot be stored. A lost
// lease shows when the attempt is settled.
func (s *settler) save(notes []job.Note, failed string, verb func(context.Context, []job.Note) ([]job.Lease, error)) {
	_, err := s.untilAnswered(opNote, len(notes), func(ctx context.Context) ([]job.Fate, error) {
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
