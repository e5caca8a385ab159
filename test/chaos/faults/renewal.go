//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// expiry is when a lease l of a worker w expires: one that is kept does when its worker counts as
// dead, or if nobody knows the worker.
const expiry = "case when l.kept then coalesce(w.alive_until, '-infinity') else l.expires_at end"

// lateRenewal locks a worker and its leases, stops the worker while its renewal waits for the
// locks, and lets the renewal go on when the leases have expired. A worker that runs gives its
// leases up in time, and a renewal that waits is canceled by it; this one can do neither, so the
// database alone must refuse to revive them.
func lateRenewal(s *Scene, random *rand.Rand) Fault {
	o := pick(random, s.Workers)
	const locker = "chaos late-renewal"
	byName := fmt.Sprintf("worker_id like '%s/%%'", o.Name)
	mine := "from leases l left join workers w using (worker_id) where l." + byName
	// In the order in which the product locks them.
	lock, unlock := within(s, pgx.TxOptions{}, fmt.Sprintf(`set local application_name = '%s';
		select from workers where %s order by worker_id for update;
		select from leases where %s order by job_id for update`, locker, byName, byName))
	halt, goOn := stopAndGoOn(func() []rig.Process { return []rig.Process{o.Process()} })
	renewalWaits := fmt.Sprintf(`select exists (
		select from pg_stat_activity h join pg_stat_activity l on l.pid = any (pg_blocking_pids(h.pid))
		where h.application_name = 'holdfast heartbeat' and l.application_name = '%s')`, locker)
	f := Fault{
		Record: history.Fault{Target: o.Name, Pause: true}, Uses: []string{usesLocks, usesPrimary, o.Name},
	}
	f.Inject = func(ctx context.Context) error {
		primary := s.Cluster.Primary()
		start, stop := context.WithTimeout(ctx, 2*s.Lease) // it has nothing to do while all is paused
		defer stop()
		if err := primary.Await(start, busy(o)); err != nil {
			return err
		}
		if err := lock(ctx); err != nil {
			return err
		}
		soon, cancel := context.WithTimeout(ctx, s.Lease)
		defer cancel()
		if err := primary.Await(soon, renewalWaits); err != nil {
			return err
		}
		if err := halt(ctx); err != nil {
			return err
		}
		// The worker may have canceled it just before it was stopped.
		return primary.Await(soon, renewalWaits)
	}
	f.Until = func(ctx context.Context) error {
		// Some that are kept, and some that are not: those are renewed in another way.
		return s.Cluster.Primary().Await(ctx, fmt.Sprintf(`select coalesce(
			greatest(min(%[1]s) filter (where l.kept), min(%[1]s) filter (where not l.kept)) < clock_timestamp() - interval '300 ms', true) %[2]s`, expiry, mine))
	}
	f.Heal = func(ctx context.Context) error {
		_ = unlock(ctx) // which returns no error
		// Its renewal comes first, unless it is refused: then others take the leases.
		done := s.Cluster.Primary().Await(ctx, "select count(*) = 0 "+mine+" and "+expiry+" < clock_timestamp()")
		return errors.Join(done, goOn(ctx))
	}
	return f
}
