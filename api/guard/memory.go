package guard

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Memory keeps logins in the process, for one that has no database. They end with it.
type Memory struct {
	mu              sync.Mutex
	sessions, links map[[32]byte]kept
}

// kept is a login with the time at which it ends.
type kept struct {
	job.Login

	ends time.Time
}

// NewMemory returns a Memory without logins.
func NewMemory() *Memory {
	return &Memory{sessions: make(map[[32]byte]kept), links: make(map[[32]byte]kept)}
}

// BeginSession implements Logins.
func (m *Memory) BeginSession(_ context.Context, l job.Login) error {
	m.put(m.sessions, l)
	return nil
}

// MakeLink implements Logins.
func (m *Memory) MakeLink(_ context.Context, l job.Login) error {
	m.put(m.links, l)
	return nil
}

// Session implements Logins.
func (m *Memory) Session(_ context.Context, digest [32]byte) (job.Login, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(m.sessions, digest)
}

// TakeLink implements Logins.
func (m *Memory) TakeLink(_ context.Context, digest [32]byte) (job.Login, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.find(m.links, digest)
	delete(m.links, digest)
	return l, err
}

// EndSession implements Logins.
func (m *Memory) EndSession(_ context.Context, digest [32]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, digest)
	return nil
}

// put also forgets those whose time is over.
func (m *Memory) put(in map[[32]byte]kept, l job.Login) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(in, func(_ [32]byte, k kept) bool { return !now.Before(k.ends) })
	in[l.Digest] = kept{l, now.Add(l.Lasts)}
}

func (m *Memory) find(in map[[32]byte]kept, digest [32]byte) (job.Login, error) {
	k, found := in[digest]
	k.Lasts = time.Until(k.ends)
	if !found || k.Lasts <= 0 {
		return job.Login{}, job.ErrNoLogin
	}
	return k.Login, nil
}
