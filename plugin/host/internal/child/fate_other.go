//go:build !linux

package child

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Only Linux is a target. Elsewhere the package serves development: a process
// that outlives its orchestrator notices the end of its standard input, limits
// are not set, and processes that leave their group are not found.

func bear(cmd *exec.Cmd, spec *Spec, _ *cgroup.Group) (offspring, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: spec.Identity.credential()}
	return direct{cmd}, cmd.Start()
}

type direct struct{ cmd *exec.Cmd }

func (d direct) pid() int { return d.cmd.Process.Pid }

func (d direct) keeper() int { return 0 }

func (d direct) killAt(time.Time) {}

func (d direct) reap(mu *sync.Mutex, last func()) (died Death, alone bool) {
	err := d.cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	last()
	return deathOf(err), false
}

func killGroupAtHangup(*os.File, int) {}

func spareGroupAtHangup(*os.File) {}

func confine(int, *Spec) error { return nil }

type watch struct{}

func newWatch(*Spec, *cgroup.Group, int, int) *watch { return nil }

func (*watch) stand(*Process) {}

// Enforced says that limits are not set here.
func Enforced(Limits, *cgroup.Tree, *Identity) []job.Enforcement { return nil }

func killMarked(string) {}
