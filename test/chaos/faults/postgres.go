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
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// postgres hits PostgreSQL's processes.
func postgres() []Kind {
	return []Kind{
		{Name: "kill-backend", Make: killBackend},
		{Name: "terminate-backends", Make: onBackends("pg_terminate_backend")},
		{Name: "cancel-statements", Make: onBackends("pg_cancel_backend")},
		{Name: "stop-backends", Make: stopServer("postgres: holdfast", 3)},
		{Name: "stop-walwriter", Make: stopServer("postgres: walwriter", 1)},
		{Name: "stop-checkpointer", Make: stopServer("postgres: checkpointer", 1)},
		{Name: "stop-walsender", Make: stopServer("postgres: walsender", 1), Missing: needsStandby},
		{Name: "stop-primary", Make: stopServer("", 1000)},
		{Name: "stop-standby", Make: stopStandby, Missing: needsStandby},
		{Name: "kill-primary", Make: killPrimary},
		{Name: "restart-primary", Make: restartPrimary},
		{Name: "kill-standby", Make: killStandby, Missing: needsStandby},
	}
}

// started makes sure that the primary runs, and that its standby follows. A primary that
// runs may be about to end.
func started(s *Scene) func(context.Context) error {
	const glance = 20 * time.Second
	return func(ctx context.Context) error {
		return untilDone(ctx, func(ctx context.Context) error {
			if primary := s.Cluster.Primary(); !primary.Running() {
				if err := primary.Start(ctx); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(ctx, glance)
			defer cancel()
			return s.Cluster.AwaitStandby(ctx)
		})
	}
}

// clients is the condition for the connections of the product.
const clients = "application_name like 'holdfast%'"

func killBackend(s *Scene, _ *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "primary", Crash: true}, Uses: []string{usesPrimary, usesLocks, usesStandby},
		Inject: func(ctx context.Context) error {
			conn, err := s.Cluster.Primary().Connect(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
			var pid int
			err = conn.QueryRow(ctx, "select pid from pg_stat_activity where "+clients+" order by state_change desc limit 1").Scan(&pid)
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		},
		Heal: started(s),
	}
}

func onBackends(function string) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		share := 1 + random.IntN(4)
		return Fault{
			Record: history.Fault{Target: "primary", Parameters: map[string]string{"one in": fmt.Sprint(share)}},
			Uses:   []string{usesPrimary},
			Inject: func(ctx context.Context) error {
				// Cancels of commits that wait for the standby are a kind of their own.
				return s.Cluster.Primary().Exec(ctx, fmt.Sprintf(
					"select %s(pid) from pg_stat_activity where %s and wait_event is distinct from 'SyncRep' and pid %% %d = 0", function, clients, share))
			},
			Heal: nothing,
		}
	}
}

// stopServer stops processes of the primary whose title begins like that; all of them for
// an empty title.
func stopServer(title string, most int) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		f := Fault{
			Record: history.Fault{Target: "primary", Pause: true}, Uses: []string{usesPrimary},
			Lasts: between(random, time.Second, s.Lease*3/2),
		}
		f.Inject, f.Heal = stopAndGoOn(func() []rig.Process { return s.Cluster.Primary().Processes(title, most) })
		return f
	}
}

func stopStandby(s *Scene, random *rand.Rand) Fault {
	f := Fault{Record: history.Fault{Target: "standby", Pause: true}, Uses: []string{usesStandby}, Lasts: between(random, time.Second, s.Lease)}
	f.Inject, f.Heal = stopAndGoOn(func() []rig.Process { return s.Cluster.Standby().Processes("", 1000) })
	return f
}

func killPrimary(s *Scene, random *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "primary", Crash: true}, Uses: []string{usesPrimary, usesLocks, usesStandby},
		Lasts:  between(random, 0, 2*time.Second),
		Inject: func(context.Context) error { return s.Cluster.Primary().Kill() }, Heal: started(s),
	}
}

func restartPrimary(s *Scene, _ *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "primary"}, Uses: []string{usesPrimary, usesLocks, usesStandby},
		Inject: func(context.Context) error { s.Cluster.Primary().Stop(); return nil }, Heal: started(s),
	}
}

func killStandby(s *Scene, random *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: "standby", Crash: true}, Uses: []string{usesStandby}, Lasts: between(random, 0, 3*time.Second),
		Inject: func(context.Context) error { return s.Cluster.Standby().Kill() },
		Heal: func(ctx context.Context) error {
			if s.Cluster.Standby().Running() {
				return errors.New("the standby runs")
			}
			if err := s.Cluster.Standby().Start(ctx); err != nil {
				return err
			}
			return s.Cluster.AwaitStandby(ctx)
		},
	}
}
