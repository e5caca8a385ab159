//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// contents hit what is in the database, and the disk that it is on.
func contents() []Kind {
	return []Kind{
		{Name: "lock-rows", Make: lockRows},
		{Name: "lock-table", Make: lockTable},
		{Name: "late-renewal", Make: lateRenewal},
		{Name: "old-snapshot", Make: oldSnapshot},
		{Name: "bad-statistics", Make: badStatistics},
		{Name: "disk-full", Make: diskFull, Missing: func(s *Scene) string {
			if !s.Cluster.Primary().Disk() {
				return "the server has no file system of its own: only root can make one, with 5 GiB of free memory"
			}
			return ""
		}},
	}
}

// within runs a statement in a transaction that stays open until it is healed.
func within(s *Scene, options pgx.TxOptions, statement string) (inject, heal func(context.Context) error) {
	var conn *pgx.Conn
	inject = func(ctx context.Context) error {
		var err error
		if conn, err = s.Cluster.Primary().Connect(ctx); err != nil {
			return err
		}
		tx, err := conn.BeginTx(ctx, options)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, statement)
		return err
	}
	heal = func(ctx context.Context) error {
		if conn == nil {
			return nil
		}
		_ = conn.Close(ctx) // the server may have gone meanwhile; the transaction rolls back
		return nil
	}
	return inject, heal
}

func lockRows(s *Scene, random *rand.Rand) Fault {
	table := pick(random, []string{"leases", "ready", "timers", "jobs", "workers"})
	f := Fault{
		Record: history.Fault{Target: table}, Uses: []string{usesLocks, usesPrimary}, Lasts: between(random, time.Second, s.Lease*3/2),
	}
	f.Inject, f.Heal = within(s, pgx.TxOptions{}, fmt.Sprintf("select from %s tablesample system (50) limit 200 for update skip locked", table))
	return f
}

func lockTable(s *Scene, random *rand.Rand) Fault {
	table := pick(random, []string{"leases", "ready", "timers", "jobs", "workers", "unsuccessful_attempts"})
	mode := pick(random, []string{"share", "exclusive", "access exclusive"})
	f := Fault{
		Record: history.Fault{Target: table, Parameters: map[string]string{"mode": mode}}, Uses: []string{usesLocks, usesPrimary},
		Lasts: between(random, time.Second, s.Lease),
	}
	f.Inject, f.Heal = within(s, pgx.TxOptions{}, fmt.Sprintf("set local lock_timeout = '10s'; lock table %s in %s mode", table, mode))
	return f
}

func oldSnapshot(s *Scene, random *rand.Rand) Fault {
	f := Fault{Record: history.Fault{Target: "primary"}, Uses: []string{"snapshot"}, Lasts: between(random, 2*s.Lease, 5*s.Lease)}
	f.Inject, f.Heal = within(s, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, "select count(*) from ready")
	return f
}

func badStatistics(s *Scene, random *rand.Rand) Fault {
	table := pick(random, []string{"leases", "ready", "timers", "jobs"})
	return Fault{
		Record: history.Fault{Target: table}, Uses: []string{usesPrimary}, Lasts: between(random, time.Second, 2*s.Lease),
		Inject: func(ctx context.Context) error {
			return s.Cluster.Primary().Exec(ctx, "set synchronous_commit = local",
				"delete from pg_statistic where starelid = '"+table+"'::regclass", "update pg_class set reltuples = 1e8 where oid = '"+table+"'::regclass")
		},
		Heal: func(ctx context.Context) error {
			return s.Cluster.Primary().Exec(ctx, "set synchronous_commit = local", "analyze "+table)
		},
	}
}

// diskFull fills the file system of the primary.
func diskFull(s *Scene, random *rand.Rand) Fault {
	var ballast string
	return Fault{
		Record: history.Fault{Target: "primary", Crash: true}, Uses: []string{usesPrimary, usesLocks, usesStandby},
		Lasts: between(random, time.Second, 2*s.Lease),
		Inject: func(ctx context.Context) (err error) {
			primary := s.Cluster.Primary()
			ballast, err = primary.FillDisk()
			if err != nil {
				return err
			}
			// A new segment of the log needs room.
			_ = primary.Exec(ctx, "set statement_timeout = '2s'", "select pg_switch_wal()")
			return nil
		},
		Heal: func(ctx context.Context) error {
			if ballast == "" {
				return nil
			}
			return errors.Join(os.Remove(ballast), started(s)(ctx))
		},
	}
}
