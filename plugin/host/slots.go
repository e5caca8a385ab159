package host

import (
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// bounded counts the attempts that a process has of the job types that have a
// bound of their own. It is guarded by the fleet.
type bounded struct {
	// most is what the manifest says; it is never written.
	most  map[string]int
	taken map[string]int
}

func boundsOf(m *message.Manifest) bounded {
	var b bounded
	for _, spec := range m.Specs {
		if spec.Concurrency > 0 {
			if b.most == nil {
				b = bounded{most: make(map[string]int), taken: make(map[string]int)}
			}
			b.most[spec.Type] = spec.Concurrency
		}
	}
	return b
}

func (b bounded) add(jobType string, n int) {
	if b.most[jobType] > 0 {
		b.taken[jobType] += n
	}
}

// hasRoom reports whether the process can take an attempt of the type. The fleet
// is locked.
func (p *process) hasRoom(jobType string) bool {
	most := p.bounded.most[jobType]
	return p.inFlight < p.capacity && (most == 0 || p.bounded.taken[jobType] < most)
}

func (p *process) take(jobType string) {
	p.inFlight++
	p.bounded.add(jobType, 1)
}

func (p *process) free(jobType string) {
	p.inFlight--
	p.bounded.add(jobType, -1)
}

// addRoom adds what the process can still take to the pool. The fleet is locked.
func (p *process) addRoom(pool *job.Pool) {
	free := p.capacity - p.inFlight
	pool.Free += free
	pool.Slots += p.capacity
	for jobType, most := range p.bounded.most {
		if pool.Room == nil {
			pool.Room = make(map[string]int)
		}
		pool.Room[jobType] += min(free, most-p.bounded.taken[jobType])
	}
}
