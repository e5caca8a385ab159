package main

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// uncharged are the outcomes that cost no attempt, and either those that may.
var (
	uncharged = []string{"suspected", "snoozed", "given_back"}
	either    = []string{"interrupted", "canceled"}
)

// counted judges whether the end of an attempt was recorded, and counted as an attempt if it is
// one.
func (r *record) counted(f *findings, one *story, s *step) {
	before, _ := s.before.Int("attempt")
	after, _ := s.after.Int("attempt")
	outcome := s.attempt["outcome"]
	switch {
	case s.to == "succeeded":
		if after != before+1 {
			f.add(one.id, []string{s.line}, "succeeded, and its attempts went from %d to %d", before, after)
		}
	case s.attempt == nil && s.to == "queued": // withoutTrace judges it
	case s.attempt == nil:
		f.add(one.id, []string{s.line}, "became %s, but no attempt was recorded", s.to)
	default:
		charge := after - before
		free, open := slices.Contains(uncharged, outcome), slices.Contains(either, outcome)
		if charge != 0 && charge != 1 || !open && free != (charge == 0) {
			f.add(one.id, []string{s.line}, "an attempt was %s, and the attempts went from %d to %d", outcome, before, after)
		}
	}
}

// died judges deaths: all attempts are used up, or a handler said that none can succeed, or as many
// processes as may be have died under the job.
func (r *record) died(f *findings, one *story, s *step) {
	outcome := s.attempt["outcome"]
	crashes, _ := s.after.Int("crashes")
	before, _ := s.before.Int("crashes")
	if (outcome == "crashed" || outcome == "suspected") && crashes != before+1 {
		f.add(one.id, []string{s.line}, "an attempt was %s, and the crashes went from %d to %d", outcome, before, crashes)
	}
	if s.to != "dead" || outcome == "permanent" {
		return
	}
	attempts, _ := s.after.Int("attempt")
	limit, _ := s.after.Int("max_attempts")
	byCrashes := outcome == "crashed" && r.run.MaxCrashes > 0 && crashes >= int64(r.run.MaxCrashes)
	if attempts < limit && !byCrashes {
		f.add(one.id, []string{s.line}, "died after %d attempts of %d and %d crashes, and the last was %s", attempts, limit, crashes, outcome)
	}
}

// forgiven is how often a job may lose its owner without a charge.
const forgiven = 5

// interrupted judges attempts whose owner was lost: each is counted until there are too many, and
// charged from then on, so that a job that ends all its owners is dead at last.
func interrupted(f *findings, one *story, s *step) {
	if s.attempt["outcome"] != "interrupted" {
		return
	}
	before, _ := s.before.Int("interruptions")
	after, _ := s.after.Int("interruptions")
	from, _ := s.before.Int("attempt")
	to, _ := s.after.Int("attempt")
	switch charged := to > from; {
	case !charged && after != before+1:
		f.add(one.id, []string{s.line}, "an attempt was interrupted, and the interruptions went from %d to %d", before, after)
	case charged && before < forgiven:
		f.add(one.id, []string{s.line}, "an attempt was charged for interruption %d, and %d are free", before+1, forgiven)
	}
}

// timedOut judges timeouts: none comes too soon.
func (r *record) timedOut(f *findings, one *story, s *step) {
	timeout := r.run.Timeouts[s.after["job_type"]]
	if s.attempt["outcome"] != "timeout" || timeout == 0 {
		return
	}
	over, err := s.attempt.Time("ended_at")
	if err != nil || s.held == nil || over+slack < s.held.original().claimed+history.Nanos(timeout) {
		f.add(one.id, []string{s.line}, "timed out at %s, sooner than %s after its claim", s.attempt["ended_at"], timeout)
	}
}

// backedOff judges when a job is tried again: neither sooner nor later than it is to be.
func (r *record) backedOff(f *findings, one *story, s *step) {
	outcome := s.attempt["outcome"]
	backoff, bounded := r.run.Retries[s.after["job_type"]]
	if s.to != "retry" || outcome == "given_back" || !bounded {
		return
	}
	attempts, _ := s.after.Int("attempt")
	delay := shortest(backoff, attempts)
	longest := time.Duration(float64(delay)*backoff.Spread) + time.Millisecond // for what is rounded
	if outcome == "snoozed" {
		fence, _ := s.attempt.Int("fence")
		e := r.handled[attempt{one.id, fence}].ended
		if e == nil {
			return // asReported judges it
		}
		delay, longest = e.Delay, e.Delay
	}
	due, err1 := s.after.Time("run_at")
	over, err2 := s.attempt.Time("ended_at")
	if err1 != nil || err2 != nil || due < over+history.Nanos(delay) {
		f.add(one.id, []string{s.line}, "is tried again at %s, sooner than %s after %s", s.after["run_at"], delay, s.attempt["ended_at"])
	} else if backoff.Spread > 0 && due > over+history.Nanos(longest) {
		f.add(one.id, []string{s.line}, "is tried again at %s, later than %s after %s", s.after["run_at"], longest, s.attempt["ended_at"])
	}
}

// shortest is the shortest delay before a retry after so many attempts, as the database counts
// time: in microseconds.
func shortest(b history.Backoff, attempts int64) time.Duration {
	delay := float64(b.First) * math.Pow(b.Factor, float64(attempts-1))
	return time.Duration(min(delay, float64(b.Most))).Truncate(time.Microsecond)
}
