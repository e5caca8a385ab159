//go:build linux

package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/database"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// failovers let the standby take over.
func failovers() []Kind {
	return []Kind{
		{Name: "failover", Make: FailOver("failover", nil, false)},
		{Name: "kill-failover", Make: FailOver("kill-failover", nil, true)},
		{Name: "stall-cut-failover", Make: StallCut, Missing: needsStandby},
		{Name: "stall-cancel-failover", Make: StallCancel, Missing: needsStandby},
		{Name: "split-brain", Make: splitBrain, Missing: needsNoPooler},
	}
}

// StallCut stalls the replication, cuts the clients off whose commits wait, several times,
// and then fails over: what was committed on the old primary alone must not have been
// acknowledged.
func StallCut(s *Scene, random *rand.Rand) Fault {
	rounds := 2 + random.IntN(4)
	f := FailOver("stall-cut-failover", func(ctx context.Context) error {
		return stalled(ctx, s, rounds, func() error {
			for _, network := range s.Cluster.Networks {
				network.Cut()
			}
			return nil
		})
	}, random.IntN(2) == 0)(s, random)
	f.Record.Parameters["rounds"] = strconv.Itoa(rounds)
	return f
}

// StallCancel stalls the replication, cancels the wait of the commits or ends their
// connections, several times, and then fails over.
func StallCancel(s *Scene, random *rand.Rand) Fault {
	rounds := 2 + random.IntN(4)
	function := pick(random, []string{"pg_cancel_backend", "pg_cancel_backend", "pg_cancel_backend", "pg_terminate_backend"})
	f := FailOver("stall-cancel-failover", func(ctx context.Context) error {
		return stalled(ctx, s, rounds, func() error {
			return s.Cluster.Primary().Exec(ctx, "select "+function+"(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		})
	}, random.IntN(2) == 0)(s, random)
	f.Record.Parameters["rounds"], f.Record.Parameters["by"] = strconv.Itoa(rounds), function
	return f
}

// stalled stalls the replication, and hits the commits that wait. In some rounds there may be
// none, because all of the product is still busy connecting again.
func stalled(ctx context.Context, s *Scene, rounds int, hit func() error) error {
	s.Cluster.Link.Stall()
	none := errors.New("no commit waited for the standby")
	for range rounds {
		waiting, cancel := context.WithTimeout(ctx, 3*time.Second)
		if s.Cluster.Primary().Await(waiting, "select count(*) > 0 from pg_stat_activity where wait_event = 'SyncRep'") == nil {
			none = nil
		}
		cancel()
		if err := hit(); err != nil {
			return err
		}
	}
	return none
}

// FailOver makes faults that promote the standby after something else, perhaps, and then
// rebuild the old primary.
func FailOver(kind string, before func(context.Context) error, kill bool) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		return failOver(s, random, kind, before, database.Failover{Kill: kill})
	}
}

func failOver(s *Scene, random *rand.Rand, kind string, before func(context.Context) error, how database.Failover) Fault {
	way := pick(random, []database.Way{database.Rewind, database.BaseBackup})
	done := false
	f := Fault{
		Record: history.Fault{
			Target: "primary", Failover: true, Crash: how.Kill,
			Parameters: map[string]string{"rebuild": string(way), "killed": strconv.FormatBool(how.Kill)},
		},
		Uses:  []string{usesPrimary, usesStandby, usesLocks, "snapshot"},
		Lasts: between(random, time.Second, s.Lease),
	}
	f.Inject = func(ctx context.Context) error {
		if before != nil {
			if err := before(ctx); err != nil {
				s.Cluster.Link.Resume()
				return err
			}
		}
		answers, err := s.Cluster.FailOver(ctx, how)
		if !answers.IsZero() {
			done = true
			s.FailedOver(kind, answers)
		}
		return err
	}
	f.Heal = func(ctx context.Context) error {
		if !done {
			return started(s)(ctx)
		}
		for _, host := range how.Stay {
			if err := s.Cluster.Rejoin(host); err != nil {
				return err
			}
		}
		return s.Cluster.Rebuild(ctx, way)
	}
	return f
}

// splitBrain leaves one host at the old primary, which goes on.
func splitBrain(s *Scene, random *rand.Rand) Fault {
	stay := pick(random, s.Cluster.Hosts)
	f := failOver(s, random, "split-brain", nil, database.Failover{Stay: []string{stay}})
	f.Record.Parameters["stays"] = stay
	f.Lasts = between(random, s.Lease, 3*s.Lease)
	return f
}
