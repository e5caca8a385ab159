//go:build !linux

package child

import (
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// Only Linux is a target. Elsewhere the package serves development: a process
// that outlives its orchestrator notices the end of its standard input, limits
// are not set, and processes that leave their group are not found.

func setFate(cmd *exec.Cmd, identity *Identity) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: identity.credential()}
}

func reap(cmd *exec.Cmd, mu *sync.Mutex, last func()) error {
	err := cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	last()
	return err
}

func killGroupAtHangup(*os.File, int) {}

func spareGroupAtHangup(*os.File) {}

func execOpen(*exec.Cmd, *os.File) {}

func startIn(cmd *exec.Cmd, _ *cgroup.Group) (*exec.Cmd, error) { return cmd, cmd.Start() }

func confine(int, *Spec) error { return nil }

type watch struct{}

func newWatch(*Spec, *cgroup.Group, int) *watch { return nil }

func (*watch) stand(*Process) {}

// Enforced says that limits are not set here.
func Enforced(Limits, *cgroup.Tree, *Identity) []Enforcement { return nil }

func killMarked(string) {}
