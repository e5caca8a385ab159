package store

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// doubtFor is how long a type is not believed to have all jobs after others had some.
const doubtFor = time.Second

// soleTypes remembers which type had all jobs when several types were claimed: it may well have
// them in the next claim. Each plugin has types of its own.
type soleTypes struct {
	mu       sync.Mutex
	believed map[string]bool
	doubted  map[string]time.Time // when the belief was last wrong
}

func newSoleTypes() soleTypes {
	return soleTypes{believed: make(map[string]bool), doubted: make(map[string]time.Time)}
}

// among returns the type that is believed to have all jobs of these types; "" if none is.
func (s *soleTypes) among(types []string, now time.Time) (found string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, jobType := range types {
		if !s.believed[jobType] || now.Sub(s.doubted[jobType]) < doubtFor {
			continue
		}
		if found != "" {
			return ""
		}
		found = jobType
	}
	return found
}

// claimed takes note of what a claim for up to limit jobs of the types has brought. A type has all
// jobs if the claim brought as many as it could, all of that type.
func (s *soleTypes) claimed(types []string, jobs []job.Claimed, limit int) {
	if len(types) < 2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, jobType := range types {
		delete(s.believed, jobType)
	}
	if len(jobs) > 0 && len(jobs) == limit && !slices.ContainsFunc(jobs, func(c job.Claimed) bool { return c.Type != jobs[0].Type }) {
		s.believed[jobs[0].Type] = true
	}
}

// wrong takes note that the type did not have all jobs.
func (s *soleTypes) wrong(jobType string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted[jobType] = now
}
