package osprocess

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/keeper"
)

const (
	// keeperArgument is the first argument with which this program runs as a keeper. The
	// second is the plugin's name, for people who list processes. The third is the
	// host's home.
	keeperArgument = "plugin-keeper"
	// sweepTimeout bounds how long a keeper tries to sweep its host's home.
	sweepTimeout = 10 * time.Second
)

// A program that imports this package is its own keeper. A call in main could be
// forgotten, and the program would then start itself again and again.
func init() {
	if len(os.Args) == 4 && os.Args[1] == keeperArgument {
		os.Exit(keep(os.Args[3]))
	}
}

// keep runs a keeper, and returns its exit code. If the orchestrator has died, the keeper
// also sweeps its home. So one living keeper is enough to kill what others have left.
func keep(home string) int {
	code, orphaned := keeper.Main()
	for end := time.Now().Add(sweepTimeout); orphaned && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		// After the orchestrator is killed, the kernel takes a moment to release its
		// lock. Another keeper may hold it then, or have swept the home.
		_, err := os.Lstat(filepath.Join(home, lockName))
		orphaned = err == nil && !sweepHome(home)
	}
	return code
}

// launched is a process that a keeper has started.
type launched struct{ *keeper.Keeper }

// launch starts the command under a keeper of the home, in the group if there is one.
func launch(cmd *exec.Cmd, spec *Spec, group *cgroup.Group, home string) (launched, error) {
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
	// An upgrade may have replaced the file of this program.
	program := cmp.Or(spec.Keeper, "/proc/self/exe")
	k, err := keeper.Start([]string{program, keeperArgument, spec.Name, home}, l, files)
	return launched{k}, err
}

// proceed continues the keeper if it is stopped: otherwise the end of the process would
// not be noticed. Call it before the end of reap.
func (l launched) proceed() { _ = unix.Kill(l.KeeperPID(), unix.SIGCONT) }

// reap waits for the process and collects it. When the process has exited, and before
// another process can get its id, reap calls last with the mutex held. It also reports
// whether everything that the process forked is gone too.
func (l launched) reap(mu *sync.Mutex, last func()) (died Death, descendantsGone bool) {
	l.AwaitExit()
	mu.Lock()
	last()
	mu.Unlock()
	ending, err := l.Collect()
	switch {
	case err != nil:
		return Death{Code: -1, other: err}, false
	case ending.Late:
		return Death{Code: -1, Signal: ending.Status.Signal(), Cause: Stalled, Detail: stalled}, true
	default:
		return deathBy(ending.Status), true
	}
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
