package child

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

// bear starts the command, in the group if there is one: through a keeper if the
// specification has one, else as our own child.
func bear(cmd *exec.Cmd, spec *Spec, group *cgroup.Group) (offspring, error) {
	if len(spec.Keeper) > 0 {
		return bearKept(cmd, spec, group)
	}
	cmd.SysProcAttr = keeper.Fate(spec.Identity.credential())
	if group == nil {
		return direct{cmd}, cmd.Start()
	}
	cmd, err := group.Start(cmd)
	return direct{cmd}, err
}

func bearKept(cmd *exec.Cmd, spec *Spec, group *cgroup.Group) (offspring, error) {
	launch := &keeper.Launch{
		Path: cmd.Path, Args: cmd.Args, Env: cmd.Env,
		Credential: spec.Identity.credential(), Open: len(cmd.ExtraFiles) > 0,
	}
	if group != nil {
		launch.Cgroup = group.Path()
	}
	files := keeper.Files{Stdin: file(cmd.Stdin), Stdout: file(cmd.Stdout), Stderr: file(cmd.Stderr)}
	if launch.Open {
		files.Binary = cmd.ExtraFiles[0]
	}
	k, err := keeper.Start(keeperCommand(spec), launch, files)
	return kept{k}, err
}

// file is the end of a pipe that plumb has made.
func file(f any) *os.File { return f.(*os.File) }

// direct is a child of ours. It dies with the thread that has started it.
type direct struct{ cmd *exec.Cmd }

func (d direct) pid() int { return d.cmd.Process.Pid }

func (d direct) keeper() int { return 0 }

func (d direct) killAt(time.Time) {}

func (d direct) reap(mu *sync.Mutex, last func()) (died Death, alone bool) {
	for {
		err := unix.Waitid(unix.P_PID, d.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	mu.Lock()
	defer mu.Unlock()
	last()
	return deathOf(d.cmd.Wait()), false
}
