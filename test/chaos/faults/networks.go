//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
	"github.com/holdfast-jobs/holdfast/test/pgproxy"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// networks hit what is between the orchestrators and the database.
func networks() []Kind {
	cut := func(p *pgproxy.Proxy) { p.Cut() }
	return []Kind{
		{Name: "cut-connections", Make: onNetwork(0, cut, func(*pgproxy.Proxy) {})},
		{Name: "unreachable-database", Make: onNetwork(2, func(p *pgproxy.Proxy) { p.Down.Store(true); p.Cut() },
			func(p *pgproxy.Proxy) { p.Down.Store(false) })},
		{Name: "stalled-network", Make: onNetwork(2, (*pgproxy.Proxy).Stall, (*pgproxy.Proxy).Resume)},
		{Name: "mute-network", Make: onNetwork(2, func(p *pgproxy.Proxy) { p.Mute.Store(true) },
			// Connections whose answers were dropped are of no use any more.
			func(p *pgproxy.Proxy) { p.Mute.Store(false); p.Cut() })},
		{Name: "lose-commit-answers", Make: onNetwork(1, func(p *pgproxy.Proxy) { p.LoseCommits.Store(20) },
			func(p *pgproxy.Proxy) { p.LoseCommits.Store(0) })},
		{Name: "lose-answers", Make: onNetwork(1, func(p *pgproxy.Proxy) { p.SpareAnswers.Store(7); p.LoseAnswers.Store(20) },
			func(p *pgproxy.Proxy) { p.LoseAnswers.Store(0) })},
		{Name: "lose-requests", Make: onNetwork(1, func(p *pgproxy.Proxy) { p.SpareRequests.Store(7); p.LoseRequests.Store(20) },
			func(p *pgproxy.Proxy) { p.LoseRequests.Store(0) })},
		{Name: "stalled-replication", Make: stallReplication, Missing: needsStandby},
		{Name: "cut-replication", Make: cutReplication, Missing: needsStandby},
		{Name: "stopped-pooler", Make: stopPooler, Missing: needsPooler},
		{Name: "kill-pooler", Make: killPooler, Missing: needsPooler},
	}
}

func needsPooler(s *Scene) string {
	if s.Cluster.PoolerPID() == 0 {
		return "this run has no pooler"
	}
	return ""
}

func needsNoPooler(s *Scene) string {
	if s.Cluster.PoolerPID() != 0 {
		return "the pooler of this run leads all hosts to one server"
	}
	return ""
}

func needsStandby(s *Scene) string {
	if !s.Cluster.Synchronous {
		return "no commit waits for the standby"
	}
	return ""
}

// onNetwork breaks the network of one host for up to so many leases.
func onNetwork(leases int, inject, heal func(*pgproxy.Proxy)) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		host := pick(random, s.Cluster.Hosts)
		network := s.Cluster.Networks[host]
		lasts := time.Duration(0)
		if leases > 0 {
			lasts = between(random, s.Lease/5, time.Duration(leases)*s.Lease)
		}
		return Fault{
			Record: history.Fault{Target: host, Parameters: map[string]string{"lasts": lasts.String()}},
			Uses:   []string{usesNetwork(host)}, Lasts: lasts,
			Inject: func(context.Context) error { inject(network); return nil },
			Heal:   func(context.Context) error { heal(network); return nil },
		}
	}
}

func stallReplication(s *Scene, random *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "standby"}, Uses: []string{usesStandby}, Lasts: between(random, time.Second, s.Lease),
		Inject: func(context.Context) error { s.Cluster.Link.Stall(); return nil },
		Heal:   func(context.Context) error { s.Cluster.Link.Resume(); return nil },
	}
}

func cutReplication(s *Scene, random *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "standby"}, Uses: []string{usesStandby}, Lasts: between(random, time.Second, s.Lease),
		Inject: func(context.Context) error { s.Cluster.Link.Down.Store(true); s.Cluster.Link.Cut(); return nil },
		Heal: func(ctx context.Context) error {
			s.Cluster.Link.Down.Store(false)
			return s.Cluster.AwaitStandby(ctx)
		},
	}
}

func stopPooler(s *Scene, random *rand.Rand) Fault {
	f := Fault{Record: history.Fault{Target: "pooler", Pause: true}, Uses: []string{"pooler"}, Lasts: between(random, time.Second, s.Lease)}
	f.Inject, f.Heal = stopAndGoOn(func() []rig.Process { return poolerProcess(s) })
	return f
}

// killPooler kills PgBouncer, which is then started again.
func killPooler(s *Scene, _ *rand.Rand) Fault {
	killed := 0
	return Fault{
		Record: history.Fault{Target: "pooler"}, Uses: []string{"pooler"},
		Inject: func(context.Context) error {
			found := poolerProcess(s)
			if len(found) == 0 {
				return errors.New("there is no such process")
			}
			killed = found[0].PID
			return stage.Send(found[0], syscall.SIGKILL)
		},
		Heal: func(ctx context.Context) error {
			for s.Cluster.PoolerPID() == killed {
				select {
				case <-ctx.Done():
					return fmt.Errorf("PgBouncer was not started again: %w", ctx.Err())
				case <-time.After(20 * time.Millisecond):
				}
			}
			return nil
		},
	}
}

func poolerProcess(s *Scene) []rig.Process {
	p, err := rig.ProcessOf(s.Cluster.PoolerPID())
	if err != nil {
		return nil
	}
	return []rig.Process{p}
}
