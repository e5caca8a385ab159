//go:build linux

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// Needed lists the kinds that a run cannot do without. Each is to be injected while nothing
// else is, so that it has its consequences on any machine, and so that these can be
// timed.
func Needed() []Kind {
	return slices.Concat(ForStaleAttempts(), ForFailovers(), ForLostAnswers(), []Kind{
		{Name: "kill-orchestrator", Make: untilReaped("kill-orchestrator", killOrchestrator)},
		{Name: "kill-host", Make: untilReaped("kill-host", killHost)},
	})
}

// ForStaleAttempts lists the kinds that make handlers report under leases that others have
// taken.
func ForStaleAttempts() []Kind {
	return []Kind{
		{Name: "stop-orchestrator", Make: untilReaped("stop-orchestrator", stopOrchestrator)},
		{Name: "stop-host", Make: untilReaped("stop-host", stopHost)},
	}
}

// ForFailovers lists the simplest kind of failover.
func ForFailovers() []Kind {
	return []Kind{{Name: "kill-failover", Make: FailOver("kill-failover", nil, true)}}
}

// ForLostAnswers lists the kinds after which clients do not know what they have done.
func ForLostAnswers() []Kind {
	return []Kind{{Name: "kill-api", Make: killAPI}}
}

// held is a lease. Whoever takes it over keeps the fence, so it is gone when the job can be
// claimed again.
type held struct {
	job   string
	fence int64
}

// holding lists the leases of an orchestrator.
func holding(ctx context.Context, s *Scene, o *stage.Orchestrator) ([]held, error) {
	conn, err := s.Cluster.Primary().Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, err := conn.Query(ctx, "select job_id::text, fence from leases where worker_id like $1", o.Name+"/%")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []held
	for rows.Next() {
		var one held
		if err := rows.Scan(&one.job, &one.fence); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

const (
	// fewest is how many attempts must run on an orchestrator that is to lose them.
	fewest = 4
	// patience bounds the wait until it is busy, and until others have taken its leases.
	patience = 2 * time.Minute
)

// busy is the condition for that.
func busy(o *stage.Orchestrator) string {
	return fmt.Sprintf("select count(*) >= %d from leases where worker_id like '%s/%%' and claimed_at < now() - interval '100 ms'", fewest, o.Name)
}

// untilReaped changes faults that end or stop one orchestrator: they begin when it is busy,
// and heal when others have taken all of its leases.
func untilReaped(kind string, hit func(*Scene, *rand.Rand) Fault) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		f := hit(s, random)
		for f.hits == s.API { // it holds nothing
			f = hit(s, random)
		}
		o, inject, heal := f.hits, f.Inject, f.Heal
		var leases []held
		var since reports
		f.Inject = func(ctx context.Context) (err error) {
			waiting, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if err := s.Cluster.Primary().Await(waiting, busy(o)); err != nil {
				return err
			}
			if err := inject(ctx); err != nil {
				return err
			}
			since = reportsOf(s, o) // what came before was in time
			if f.Record.Pause {
				s.Lost(kind, o, time.Now(), false)
			}
			leases, err = holding(ctx, s, o)
			return err
		}
		f.Until = func(ctx context.Context) error {
			if len(leases) == 0 {
				return nil
			}
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			var rows []string
			for _, l := range leases {
				rows = append(rows, fmt.Sprintf("('%s'::uuid, %d)", l.job, l.fence))
			}
			return s.Cluster.Primary().Await(ctx, "select count(*) = 0 from leases where (job_id, fence) in ("+strings.Join(rows, ", ")+")")
		}
		f.Heal = func(ctx context.Context) error {
			err := heal(ctx)
			stale := 0
			for _, e := range since.ended() {
				if slices.Contains(leases, held{e.JobID, e.Fence}) {
					stale++
				}
			}
			if f.Record.Pause && stale > 0 {
				s.Stale(stale)
			}
			return err
		}
		return f
	}
}
