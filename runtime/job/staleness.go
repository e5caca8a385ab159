package job

import (
	"context"
	"sync"
	"time"
)

// Staleness is what one request accepts, and gets, of what may be a little old: lists and
// figures, which a replica of the database may answer. It is safe for concurrent use.
type Staleness struct {
	// Fresh asks for what the database has now.
	Fresh bool

	mu   sync.Mutex
	old  bool
	most time.Duration
}

type stalenessKey struct{}

// WithStaleness returns a context whose reads are counted in s.
func WithStaleness(ctx context.Context, s *Staleness) context.Context {
	return context.WithValue(ctx, stalenessKey{}, s)
}

// StalenessOf returns that of the context; without one, nobody asks, and what is noted is
// not kept.
func StalenessOf(ctx context.Context) *Staleness {
	if s, ok := ctx.Value(stalenessKey{}).(*Staleness); ok {
		return s
	}
	return &Staleness{}
}

// Note records that something came from a replica, and how old it is at most.
func (s *Staleness) Note(age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old, s.most = true, max(s.most, age)
}

// Age returns how old the oldest part of the answer is at most, and false if no part came from
// a replica.
func (s *Staleness) Age() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most, s.old
}
