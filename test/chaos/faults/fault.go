//go:build linux

// Package faults is what a chaos run inflicts. A fault is a small value with its kind,
// how it is injected and how it is healed. Each file is a family: signals to the product's
// processes, networks, PostgreSQL's processes, locks and disks, failovers, plugins, and
// what operators do. Those that every run needs are listed once more, for times when
// nothing else is injected.
package faults

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/census"
	"github.com/holdfast-jobs/holdfast/test/chaos/database"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// Scene is what faults can hit.
type Scene struct {
	Cluster *database.Cluster
	// Workers have plugins, and API has none.
	Workers []*stage.Orchestrator
	API     *stage.Orchestrator
	Plugins []stage.Plugin
	Census  *census.Census
	Lease   time.Duration
	// Effects is the directory where handlers leave theirs.
	Effects string
	Log     *slog.Logger
	// FailedOver is told of each new primary, at the moment when it accepts writes.
	FailedOver func(kind string, answers time.Time)
	// Lost is told of each orchestrator that can no longer renew its leases, and whether
	// others on its host can see that.
	Lost func(kind string, o *stage.Orchestrator, at time.Time, seen bool)
	// Stale is told how many attempts have reported under leases that others had taken.
	Stale func(attempts int)
}

// All lists the orchestrators.
func (s *Scene) All() []*stage.Orchestrator { return append(slices.Clone(s.Workers), s.API) }

// Fault is one fault, not yet injected.
type Fault struct {
	// Record has the kind, the target and the parameters.
	Record history.Fault
	// Uses names what no other fault may use meanwhile.
	Uses []string
	// Lasts is the time between Inject and Heal, at least. Until, if it is not nil, waits
	// for what must have happened before Heal.
	Lasts time.Duration
	Until func(ctx context.Context) error
	// Inject fails if the fault could not be injected. Heal is called in any case, and
	// undoes what there is to undo.
	Inject, Heal func(ctx context.Context) error

	// hits is the orchestrator that is hit; nil if it is not one.
	hits *stage.Orchestrator
}

// Kind makes faults of one kind.
type Kind struct {
	Name string
	// Make chooses the target and the parameters. The same random numbers make the same
	// fault in the same scene.
	Make func(s *Scene, random *rand.Rand) Fault
	// Missing says why this machine cannot have such faults; nil or empty if it can.
	Missing func(s *Scene) string
}

// What faults use.
const (
	usesPrimary = "primary"
	usesStandby = "standby"
	usesLocks   = "locks"
)

func usesNetwork(host string) string { return "network of " + host }

// Kinds lists all kinds, by family.
func Kinds() []Kind {
	return slices.Concat(signals(), networks(), postgres(), contents(), failovers(), plugins(), operators())
}

// nothing is for faults that heal by themselves.
func nothing(context.Context) error { return nil }

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
