package keeper

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/census"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// lookAgain is the wait between two looks for members of a family that is being
// killed.
const lookAgain = 2 * time.Millisecond

// guard is the keeper's watch over its process.
type guard struct {
	pid   int
	group *cgroup.Group
	// exited is closed when the process has exited; it is not collected then.
	exited chan struct{}
	// heard gets a value after new orders.
	heard chan struct{}

	mu sync.Mutex
	// killAt is on the monotonic clock; stay for never.
	killAt order
	// collected says that the order to collect has come.
	collected bool
	hungUp    bool
	partial   []byte
	late      bool
}

func newGuard(pid int, group *cgroup.Group) *guard {
	return &guard{pid: pid, group: group, exited: make(chan struct{}), heard: make(chan struct{}, 1)}
}

// listen takes orders until the line hangs up.
func (g *guard) listen() {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: lineFile, Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		g.mu.Lock()
		g.takeLocked()
		over := g.hungUp
		g.mu.Unlock()
		select {
		case g.heard <- struct{}{}:
		default:
		}
		if over {
			return
		}
	}
}

// takeLocked takes all orders that have come by now.
func (g *guard) takeLocked() {
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
			if o := orderOf(g.partial); o == collect {
				g.collected = true
			} else {
				g.killAt = o
			}
		}
	}
}

// reap collects the orphans of the family, which come to us, until the process
// itself has exited.
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

// stand returns when the process has exited and the id may be given away, or the
// line has hung up; then nothing is left that it does not kill. It calls tell when
// the process has exited.
func (g *guard) stand(tell func()) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		left, due, gone := g.judge()
		if gone {
			g.kill()
			return
		}
		if due {
			g.kill()
		}
		timer.Reset(left)
		select {
		case <-g.exited:
			tell()
			g.awaitCollect()
			return
		case <-g.heard:
		case <-timer.C:
		}
	}
}

// judge says how long the process may go on, and whether it may not. Orders that
// have come while we were stopped ourselves count.
func (g *guard) judge() (left time.Duration, due, hungUp bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takeLocked()
	if g.hungUp || g.killAt == stay {
		return time.Hour, false, g.hungUp
	}
	if left = time.Duration(g.killAt) - monotonic(); left > 0 {
		return left, false, false
	}
	g.late = true
	return time.Second, true, false
}

// awaitCollect returns when the process may be collected. What is left of its
// family does not live for as long as that takes: the orchestrator may be stopped.
func (g *guard) awaitCollect() {
	first := time.After(50 * time.Millisecond)
	for {
		g.mu.Lock()
		over := g.collected || g.hungUp
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

// kill kills the family until nothing of it runs, the process included.
func (g *guard) kill() {
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(lookAgain) {
		if g.group != nil {
			g.group.Kill()
		}
		running := census.Descendants(os.Getpid())
		if len(running) == 0 {
			return
		}
		for _, p := range running {
			killOne(p)
		}
	}
}

// killOne kills the process, but no other that has got its id meanwhile: the handle
// refers to one process for good.
func killOne(p census.Process) {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return
	}
	if p.Is() {
		_ = handle.Signal(syscall.SIGKILL)
	}
	_ = handle.Release()
}

// bury collects the process and all that comes to us, killing what is not dead.
func (g *guard) bury() Ending {
	g.mu.Lock()
	ending := Ending{Late: g.late}
	g.mu.Unlock()
	end := time.Now().Add(Patience)
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
