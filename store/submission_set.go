package store

import (
	"bytes"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submissionSet is a batch with its repetitions found.
type submissionSet struct {
	entries []entry
	// first is the place of the first submission with a key.
	first map[key]int
	// distinct are those places, in the order of their keys: the order in
	// which locks are taken.
	distinct []int
}

func newSubmissionSet(batch []job.Submission) submissionSet {
	set := submissionSet{
		entries: make([]entry, len(batch)), first: make(map[key]int, len(batch)), distinct: make([]int, 0, len(batch)),
	}
	for i, submission := range batch {
		e := newEntry(submission)
		set.entries[i] = e
		if _, seen := set.first[e.key]; !seen {
			set.first[e.key] = i
			set.distinct = append(set.distinct, i)
		}
	}
	slices.SortFunc(set.distinct, func(a, b int) int { return set.entries[a].key.compare(set.entries[b].key) })
	return set
}

// ids are those of the distinct submissions.
func (s submissionSet) ids() pgtype.ArrayGetter {
	return column(s.distinct, func(place int) pgtype.UUID { return uuid(s.entries[place].ID) })
}

// settle answers for those of the distinct submissions that are stored, and
// takes them out.
func (s *submissionSet) settle(stored []submittedRow, results []job.Submitted) {
	byID := make(map[job.ID]submittedRow, len(stored))
	for _, row := range stored {
		byID[row.JobID] = row
	}
	s.distinct = slices.DeleteFunc(s.distinct, func(place int) bool {
		row, ok := byID[s.entries[place].ID]
		if ok {
			results[place] = row.answer(s.entries[place])
		}
		return ok
	})
}

// repeat gives repetitions the result of the first submission with their key.
func (s submissionSet) repeat(results []job.Submitted) {
	for i, e := range s.entries {
		if at := s.first[e.key]; at != i {
			results[i] = results[at]
			results[i].Receipt.Replayed = true
			if results[at].Err == nil && !bytes.Equal(e.hash, s.entries[at].hash) {
				results[i] = job.Submitted{Err: job.ErrKeyReused}
			}
		}
	}
}
