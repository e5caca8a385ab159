package main

import (
	"slices"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// expiries are when jobs expire, unless they have started, by their marks: how long after their
// submission.
func (r *record) expiries() map[string]history.Nanos {
	ttls := make(map[string]history.Nanos)
	for _, call := range r.calls {
		for _, s := range call.Submissions {
			if s.TTL > 0 {
				ttls[s.Mark] = history.Nanos(s.TTL)
			}
		}
	}
	return ttls
}

// expired reports whether a job that nobody has canceled had expired when it was. A worker that
// has claimed it may be early by as long as the claim takes, which is shorter than a lease.
func (r *record) expired(s *step, ttl history.Nanos) bool {
	created, err := s.after.Time("created_at")
	early := slack
	if s.from == "running" {
		early += history.Nanos(r.run.Lease)
	}
	return err == nil && s.committed+early >= created+ttl
}

// notOnceStarted judges a job that was canceled because it had expired: no handler has begun.
func (r *record) notOnceStarted(f *findings, one *story, s *step) {
	for _, past := range one.steps {
		if past == s {
			return
		}
		if past.holds == nil {
			continue
		}
		if e := r.handled[attempt{one.id, past.holds.fence}].began; e != nil {
			f.add(one.id, []string{e.at, s.line}, "expired, although its handler had begun")
			return
		}
	}
}

// noneTooOld judges first attempts: none begins when its job has expired.
func (r *record) noneTooOld(f *findings) {
	ttls := r.expiries()
	r.claims(func(one *story, s *step) {
		ttl := ttls[s.before.Mark()]
		e := r.handled[attempt{one.id, s.holds.fence}].began
		if ttl == 0 || e == nil || slices.ContainsFunc(one.steps, func(past *step) bool { return past.holds != nil && past.holds.fence < s.holds.fence }) {
			return
		}
		f.look()
		created, err := s.before.Time("created_at")
		if err != nil || r.tooLate(s.holds, created+ttl, e.At) {
			f.add(one.id, []string{s.line, e.at}, "began although it had expired at %s", (created + ttl).Time())
		}
	})
}
