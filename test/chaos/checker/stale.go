package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// noStaleWrite is V7.
func noStaleWrite(r *record, f *findings) {
	for _, one := range r.jobs {
		for _, s := range one.steps {
			if !s.unseen {
				ownProgress(f, one, s)
			}
			if s.unseen || s.to == "running" || s.to == "" {
				continue
			}
			fence, _ := s.after.Int("fence")
			before, _ := s.before.Int("fence")
			if s.held == nil {
				if s.before != nil && !ended(s.from) && fence > before {
					f.add(one.id, []string{s.line}, "an attempt ended with the fence %d, but nobody held a lease", fence)
				}
				continue
			}
			f.look()
			evidence := []string{s.held.line, s.line}
			if fence != s.held.fence {
				f.add(one.id, evidence, "an attempt ended with the fence %d under a lease with the fence %d", fence, s.held.fence)
			}
			by := ""
			switch {
			case s.to == "succeeded":
				by = s.after["lease_id"]
			case s.attempt != nil:
				by = s.attempt["lease_id"]
			default:
				continue // V9
			}
			if by != s.held.id {
				f.add(one.id, evidence, "the attempt was ended under the lease %s, but %s was held", by, s.held.id)
			}
			if s.to == "succeeded" && s.held.over != nil {
				f.add(one.id, append(evidence, s.held.over.line), "it succeeded under a lease that a reaper had taken over")
			}
		}
	}
}

// ownProgress judges what attempts report on their way, which is their fence: only the holder of the
// lease may write it.
func ownProgress(f *findings, one *story, s *step) {
	reported := s.after["progress"]
	if s.before == nil || reported == "" || reported == s.before["progress"] {
		return
	}
	f.look()
	switch {
	case s.held == nil:
		f.add(one.id, []string{s.line}, "the attempt with the fence %s wrote its progress, but nobody held a lease", reported)
	case reported != strconv.FormatInt(s.held.fence, 10):
		f.add(one.id, []string{s.held.line, s.line}, "the attempt with the fence %s wrote its progress under the lease of that with the fence %d", reported, s.held.fence)
	case s.held.over != nil:
		f.add(one.id, []string{s.held.line, s.line}, "the attempt with the fence %s wrote its progress after a reaper had taken its lease over", reported)
	}
}

// stale counts the attempts whose handlers reported an end after a reaper had taken the
// lease, or before, while the orchestrator stood still: it went on afterwards, and passed
// the report on.
func (r *record) stale() int {
	taken := make(map[attempt]*lease)
	for _, l := range r.leases {
		if l.taken > 0 && l.over == nil && !l.orphaned {
			taken[attempt{l.job, l.fence}] = l
		}
	}
	count := 0
	for _, e := range r.effects {
		l, ok := taken[attempt{e.JobID, e.Fence}]
		if ok && e.Event == history.Ended && e.Report != history.Lost && (e.At > l.taken || r.stoodStill(l, e.At)) {
			count++
		}
	}
	return count
}

// stoodStill reports whether the orchestrator that held the lease was stopped from the
// given time on, until after the reaper had taken it.
func (r *record) stoodStill(l *lease, from history.Nanos) bool {
	return slices.ContainsFunc(r.faults, func(fault history.Fault) bool {
		return fault.Pause && fault.Error == "" && strings.HasPrefix(l.worker, fault.Target+"/") && fault.Injected <= from && fault.Healed > l.taken
	})
}
