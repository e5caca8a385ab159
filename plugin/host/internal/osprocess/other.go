//go:build !linux

package osprocess

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// Outside of Linux the package is for development only: it has no keepers and enforces
// no limits. It does not find processes that leave their group. If the orchestrator
// dies, a process ends only if it notices the end of its standard input.

type launched struct{ cmd *exec.Cmd }

func launch(cmd *exec.Cmd, spec *Spec, _ *cgroup.Group, _ string) (launched, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: spec.Identity.credential()}
	return launched{cmd}, cmd.Start()
}

func (l launched) PID() int { return l.cmd.Process.Pid }

func (l launched) KillAt(time.Time) {}

func (l launched) proceed() {}

func (l launched) reap(mu *sync.Mutex, last func()) (died Death, descendantsGone bool) {
	err := l.cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	last()
	if l.cmd.ProcessState == nil {
		return Death{Code: -1, other: err}, false
	}
	return deathBy(l.cmd.ProcessState.Sys().(syscall.WaitStatus)), false
}

func killGroupAtHangup(*os.File, int) {}

func spareGroupAtHangup(*os.File) {}

func confine(int, *Spec) error { return nil }

type watch struct{}

type gauge struct{}

func newWatch(*Spec, *cgroup.Group, launched) *watch { return nil }

func (*watch) run(*Process) {}

// Use measures nothing here.
func (c *Process) Use() (v1.PluginUse, bool) { return v1.PluginUse{}, false }

// Enforced returns nothing, since no limit is enforced here.
func Enforced(cgroup.Limits, *cgroup.Tree, *Identity) []v1.Enforcement {
	return []v1.Enforcement{}
}

func killMarked(string) {}

func continueKeepers(string) {}
