// Package store keeps jobs in PostgreSQL: the ledger and its lists, one verb for
// each transition.
//
// Every verb runs one statement of store/sql. Package job decides what happens to
// a job; the store applies it, and only for the owner of the lease.
package store

import (
	"context"
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/doctor"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Config says how to reach the database.
type Config = postgres.Config

// Store is the job ledger in PostgreSQL. It is safe for concurrent use.
type Store struct {
	*doctor.Doctor

	db    *postgres.DB
	marks lowWaterMarks
	soles soleTypes
}

// Open connects to the database and checks that it answers. It expects the current
// schema; see package migrations.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	db, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Store{Doctor: doctor.New(db.Reads, cfg.Cell, db.Replica), db: db, marks: newLowWaterMarks(), soles: newSoleTypes()}, nil
}

// FollowReplica begins to read from the replica what may be a little old, until Close: lists
// and counts of jobs, dead letters, workflows, schedules, operations, erasures, acts and events
// of plugins, and figures of the whole system. Everything else stays with the primary: what a
// client names by its id or key, since it may have just written it; workers, whose heartbeats are
// compared with the time; limits and pauses; previews, which somebody confirms; and everything
// that decides. If the replica belongs to another database, the error is
// postgres.ErrForeignReplica. Without a replica, it does nothing.
func (s *Store) FollowReplica(ctx context.Context) error {
	if s.db.Replica == nil {
		return nil
	}
	return s.db.Replica.Start(ctx)
}

// Replica says how the replica is used, if there is one. It does not query the database.
func (s *Store) Replica() v1.Replica {
	if s.db.Replica == nil {
		return v1.Replica{}
	}
	status := s.db.Replica.Status()
	shown := v1.Replica{Configured: true, Used: status.Why == nil, MaxLagSeconds: status.MaxLag.Seconds(), Reads: status.Reads}
	if status.Why != nil {
		shown.Reason = status.Why.Error()
	}
	if status.Lag != nil {
		shown.LagSeconds = new(status.Lag.Seconds())
	}
	return shown
}

// listsOf are for a list that a client may narrow down to one thing, by its id: that is
// current, as with other things that a client names.
func (s *Store) listsOf(named bool) postgres.Reader {
	if named {
		return s.db.Lists
	}
	return s.db.StaleLists
}

// Close closes every connection. Verbs must not be called afterwards. The server
// finishes the writes that it is still working on.
func (s *Store) Close() { s.db.Close() }

// Ping reports whether the database answers submissions. If not, the error is
// job.ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Stats says how the pools of connections are used. It does not query the
// database.
func (s *Store) Stats() []postgres.PoolStats { return s.db.Stats() }

// The column trace_state holds the tracestate and, if the client sent baggage,
// that on a second line: neither can contain a line break. A column of its own
// would be read and written for every job, although few have baggage.

func traceState(t job.Trace) string {
	if t.Baggage == "" {
		return t.State
	}
	return t.State + "\n" + t.Baggage
}

func traceContext(parent, state string) job.Trace {
	state, baggage, _ := strings.Cut(state, "\n")
	return job.Trace{Parent: parent, State: state, Baggage: baggage}
}
