//go:build !linux

package child

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Only Linux is a target. Elsewhere the package serves development: a process
// that outlives its orchestrator notices the end of its standard input, limits
// are not set, and processes that leave their group are not found.

func setFate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

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

func confine(int, Limits) error { return nil }

func killMarked(string) {}
