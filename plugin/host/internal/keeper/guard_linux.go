package keeper

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// lookAgain is the wait between two looks for descendants to kill.
const lookAgain = 2 * time.Millisecond

// guard watches the keeper's process.
type guard struct {
	pid   int
	group *cgroup.Group
	// exited is closed when the process has exited, before it is collected.
	exited chan struct{}
	// heard is raised after each new order.
	heard loop.Signal

	mu sync.Mutex
	// killAt is on the monotonic clock, or never.
	killAt order
	// mayCollect says that the order to collect the process has come.
	mayCollect bool
	hungUp     bool
	partial    []byte
	late       bool
}

func newGuard(pid int, group *cgroup.Group) *guard {
	return &guard{pid: pid, group: group, exited: make(chan struct{}), heard: loop.NewSignal()}
}

// listen reads orders until the line hangs up.
func (g *guard) listen() {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: lineFile, Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		g.mu.Lock()
		g.readLocked()
		over := g.hungUp
		g.mu.Unlock()
		g.heard.Raise()
		if over {
			return
		}
	}
}

// readLocked reads all orders that have come by now.
func (g *guard) readLocked() {
	var buffer [512 * orderBytes]byte
	for {
		n, _, err := unix.Recvfrom(lineFile, buffer[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n == 0:
			g.hungUp = true
			return
		}
		g.partial = append(g.partial, buffer[:n]...)
		for ; len(g.partial) >= orderBytes; g.partial = g.partial[orderBytes:] {
			if o := orderOf(g.partial); o == mayCollect {
				g.mayCollect = true
			} else {
				g.killAt = o
			}
		}
	}
}

// reap collects orphaned descendants until the process itself has exited. The kernel
// makes the keeper their parent.
func (g *guard) reap() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch pid := exitedOf(&info); {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid == g.pid:
			close(g.exited)
			return
		default:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// run returns when the process has exited and may be collected, or when the line has
// hung up and run has killed everything. It calls report when the process has exited.
func (g *guard) run(report func()) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		left, due, hungUp := g.check()
		if hungUp {
			g.kill()
			return
		}
		if due {
			g.kill()
		}
		timer.Reset(left)
		select {
		case <-g.exited:
			report()
			g.awaitCollect()
			return
		case <-g.heard:
		case <-timer.C:
		}
	}
}

// check returns how much time the process has left, and whether its time is over. It
// first reads the orders that came while the keeper itself was stopped.
func (g *guard) check() (left time.Duration, due, hungUp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readLocked()
	if g.hungUp || g.killAt == never {
		return time.Hour, false, g.hungUp
	}
	if left = time.Duration(g.killAt) - monotonic(); left > 0 {
		return left, false, false
	}
	g.late = true
	return time.Second, true, false
}

// awaitCollect returns when the process may be collected. If that takes long, perhaps
// because the orchestrator is stopped, it kills the descendants in the meantime.
func (g *guard) awaitCollect() {
	first := time.After(50 * time.Millisecond)
	for {
		g.mu.Lock()
		over := g.mayCollect || g.hungUp
		g.mu.Unlock()
		if over {
			return
		}
		select {
		case <-g.heard:
		case <-first:
			g.kill()
		}
	}
}

// kill kills the process and all descendants, and repeats until none runs.
func (g *guard) kill() {
	for end := time.Now().Add(KillTimeout); time.Now().Before(end); time.Sleep(lookAgain) {
		if g.group != nil {
			g.group.Kill()
		}
		running := proctree.Descendants(os.Getpid(), 0)
		if len(running) == 0 {
			return
		}
		for _, p := range running {
			killOne(p)
		}
	}
}

// killOne kills the process, but not another one that has since got its id: the handle
// always means the same process.
func killOne(p proctree.Process) {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return
	}
	if p.Is() {
		_ = handle.Signal(syscall.SIGKILL)
	}
	_ = handle.Release()
}

// collect collects the process and all its descendants, and kills those that still run.
func (g *guard) collect() Ending {
	g.mu.Lock()
	ending := Ending{Late: g.late}
	g.mu.Unlock()
	end := time.Now().Add(KillTimeout)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return ending
		case pid == g.pid:
			ending.Status = syscall.WaitStatus(status)
		case pid == 0 && time.Now().After(end):
			return ending
		case pid == 0:
			g.kill()
			time.Sleep(lookAgain)
		}
	}
}
