package child

import (
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/keeper"
)

// offspring is a process that was started.
type offspring interface {
	// pid is its id, and that of its process group.
	pid() int
	// keeper is the id of the process that keeps it; 0 for none.
	keeper() int
	// reap waits for the process and collects it. It calls last when the process
	// has exited but its id, and so its group's, cannot have been taken by
	// another yet, with the mutex held. Alone says that all that it has forked is
	// gone too.
	reap(mu *sync.Mutex, last func()) (died Death, alone bool)
	// killAt is as KillAt of Process.
	killAt(at time.Time)
}

// kept is a child of a keeper, which is a child of ours.
type kept struct{ k *keeper.Keeper }

func (o kept) pid() int { return o.k.PID() }

func (o kept) keeper() int { return o.k.KeeperPID() }

func (o kept) killAt(at time.Time) { o.k.KillAt(at) }

func (o kept) reap(mu *sync.Mutex, last func()) (died Death, alone bool) {
	o.k.AwaitExit()
	mu.Lock()
	last()
	mu.Unlock()
	ending, err := o.k.Collect()
	switch {
	case err != nil:
		return Death{Code: -1, other: err}, false
	case ending.Late:
		return Death{Code: -1, Signal: ending.Status.Signal(), Cause: Stalled, Detail: stalled}, true
	default:
		return deathBy(ending.Status), true
	}
}

// keeperArgument begins the last argument of a keeper; a plugin's name follows.
const keeperArgument = "keeper:"

func keeperCommand(spec *Spec) []string {
	return append(append([]string{}, spec.Keeper...), keeperArgument+spec.Name)
}
