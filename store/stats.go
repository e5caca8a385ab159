package store

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolStats says how a pool of connections is used.
type PoolStats struct {
	// Name is "worker", "submission", "read" or "heartbeat".
	Name string
	// Acquired are in use, Idle are open and free, Opening are being made;
	// together they are at most Max.
	Acquired int
	Idle     int
	Opening  int
	Max      int
	// Acquires counts how often a connection was taken, ever, and Waits how
	// often none was free then; Waited is how long that took in all.
	Acquires int64
	Waits    int64
	Waited   time.Duration
}

// Stats says how the pools are used. It does not ask the database.
func (s *Store) Stats() []PoolStats {
	return []PoolStats{
		stats("worker", s.worker), stats("submission", s.submissions), stats("read", s.reads), stats("heartbeat", s.heartbeats),
	}
}

func stats(name string, pool *pgxpool.Pool) PoolStats {
	now := pool.Stat()
	return PoolStats{
		Name:     name,
		Acquired: int(now.AcquiredConns()), Idle: int(now.IdleConns()),
		Opening: int(now.ConstructingConns()), Max: int(now.MaxConns()),
		Acquires: now.AcquireCount(), Waits: now.EmptyAcquireCount(), Waited: now.EmptyAcquireWaitTime(),
	}
}
