package osprocess

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/keeper"
)

// launched is a process that was started: by a keeper, or by this process.
type launched struct {
	// Exactly one is set.
	kept *keeper.Keeper
	cmd  *exec.Cmd
}

// keeperArgument begins the last argument of a keeper. The plugin's name follows.
const keeperArgument = "keeper:"

// launch starts the command, in the group if there is one.
func launch(cmd *exec.Cmd, spec *Spec, group *cgroup.Group) (launched, error) {
	if len(spec.Keeper) == 0 {
		return startChild(cmd, spec, group)
	}
	l := &keeper.Launch{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env,
		Credential: spec.Identity.credential(), Open: len(cmd.ExtraFiles) > 0,
	}
	if group != nil {
		l.Cgroup = group.Path()
	}
	files := keeper.Files{Stdin: cmd.Stdin.(*os.File), Stdout: cmd.Stdout.(*os.File), Stderr: cmd.Stderr.(*os.File)}
	if l.Open {
		files.Binary = cmd.ExtraFiles[0]
	}
	command := append(append([]string{}, spec.Keeper...), keeperArgument+spec.Name)
	k, err := keeper.Start(command, l, files)
	return launched{kept: k}, err
}

// pid is the id of the process, and of its process group.
func (l launched) pid() int {
	if l.kept != nil {
		return l.kept.PID()
	}
	return l.cmd.Process.Pid
}

// keeperPID is the id of its keeper; 0 for none.
func (l launched) keeperPID() int {
	if l.kept != nil {
		return l.kept.KeeperPID()
	}
	return 0
}

// killAt does nothing without a keeper; see Process.KillAt.
func (l launched) killAt(at time.Time) {
	if l.kept != nil {
		l.kept.KillAt(at)
	}
}

// reap waits for the process and collects it. When the process has exited, and before
// another process can get its id, reap calls last with the mutex held. It also reports
// whether everything that the process forked is gone too.
func (l launched) reap(mu *sync.Mutex, last func()) (died Death, descendantsGone bool) {
	if l.kept == nil {
		return deathOf(waitForChild(l.cmd, mu, last)), false
	}
	l.kept.AwaitExit()
	mu.Lock()
	last()
	mu.Unlock()
	ending, err := l.kept.Collect()
	switch {
	case err != nil:
		return Death{Code: -1, other: err}, false
	case ending.Late:
		return Death{Code: -1, Signal: ending.Status.Signal(), Cause: Stalled, Detail: stalled}, true
	default:
		return deathBy(ending.Status), true
	}
}

// startChild starts the command as a child of this process. The child dies with the
// thread that calls startChild.
func startChild(cmd *exec.Cmd, spec *Spec, group *cgroup.Group) (launched, error) {
	cmd.SysProcAttr = keeper.DieWithThread(spec.Identity.credential())
	if group == nil {
		return launched{cmd: cmd}, cmd.Start()
	}
	cmd, err := group.Start(cmd)
	return launched{cmd: cmd}, err
}

func waitForChild(cmd *exec.Cmd, mu *sync.Mutex, last func()) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	last()
	return cmd.Wait()
}

// killGroupAtHangup makes the kernel kill the process group when the last writer of the
// pipe is gone, however the orchestrator ended. The parent-death signal kills only the
// process itself, and not what it has forked. If the kernel does not support this, the
// other means still work.
func killGroupAtHangup(read *os.File, group int) {
	fd := read.Fd()
	_, _ = unix.FcntlInt(fd, unix.F_SETOWN, -group)
	_, _ = unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGKILL))
	setAsync(fd, true)
}

func spareGroupAtHangup(read *os.File) { setAsync(read.Fd(), false) }

func setAsync(fd uintptr, on bool) {
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil {
		return
	}
	flags &^= unix.O_ASYNC
	if on {
		flags |= unix.O_ASYNC
	}
	_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags)
}

// executeOpen makes cmd execute the open file instead of the one that its path leads to.
func executeOpen(cmd *exec.Cmd, open *os.File) { keeper.ExecOpen(cmd, open) }

// attendKeeper runs a keeper.
func attendKeeper() int { return keeper.Main() }
