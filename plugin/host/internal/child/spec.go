package child

import (
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// Spec is what to launch.
type Spec struct {
	Name string
	// Binary is executed; the process does not hold it.
	Binary *binary.File
	Args   []string
	// Env is the whole environment but for what Provision adds.
	Env    []string
	Limits Limits
	// Checksum is the SHA-256 of the binary in hex; empty for none.
	Checksum string
	// Identity is whom the process runs as; nil for the orchestrator's own.
	Identity *Identity
	// Keeper is a command that is to call Attend with its last argument: the
	// process gets a keeper of its own (see package keeper). Empty for none.
	Keeper []string
	// Cgroups is where the process gets a cgroup of its own; nil for none.
	Cgroups *cgroup.Tree
}

// Limits bound a process and everything that it forks, taken together; 0 is no limit.
// See host.Limits.
type Limits = cgroup.Limits

// How a limit can be enforced.
const (
	// ByCgroup: the kernel bounds the sum, at once.
	ByCgroup = "cgroup"
	// ByRlimit: the kernel bounds each process by itself.
	ByRlimit = "rlimit"
	// ByWatch: the sum is looked at several times a second.
	ByWatch = "watch"
	// ByAffinity: the processes get few processors, and yield to others.
	ByAffinity = "affinity and niceness"
)
