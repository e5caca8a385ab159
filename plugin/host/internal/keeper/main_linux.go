package keeper

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

// The keeper's open files, besides the standard ones.
const (
	lineFile   = 3
	binaryFile = 4
)

// Main runs the keeper that Start has started. It returns the exit code, and whether the
// orchestrator has died.
func Main() (code int, orphaned bool) {
	// The process dies with this thread; see Pdeathsig in begin.
	runtime.LockOSThread()
	unix.CloseOnExec(lineFile)
	// Service managers signal all processes of a service. The keeper stays. It must not
	// ignore the signals, or its process would ignore them too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	line := os.NewFile(lineFile, "line")
	reports := json.NewEncoder(line)
	g, err := begin(line)
	if err != nil {
		return 1, reports.Encode(report{Failed: failureOf(err)}) != nil
	}
	if reports.Encode(report{Started: g.pid}) != nil {
		g.hungUp = true
	}
	go g.listen()
	go g.reap()
	g.run(func() { _ = reports.Encode(report{Exited: true}) })
	ending := g.collect()
	return 0, reports.Encode(report{Ended: &ending}) != nil
}

// begin starts the process.
func begin(line *os.File) (*guard, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	l, err := readLaunch(line)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: l.Path, Args: l.Args, Env: l.Env,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: l.Credential},
	}
	if l.Open {
		unix.CloseOnExec(binaryFile)
		binary := os.NewFile(binaryFile, "binary")
		defer func() { _ = binary.Close() }()
		cmd.ExtraFiles, cmd.Path = []*os.File{binary}, "/proc/self/fd/3"
	}
	var group *cgroup.Group
	if l.Cgroup != "" {
		group = cgroup.At(l.Cgroup)
		cmd, err = group.Start(cmd)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	releaseFiles()
	return newGuard(cmd.Process.Pid, group), nil
}

// releaseFiles closes the standard files, which belong to the process: otherwise its
// output would not end with it.
func releaseFiles() {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		for fd := range 3 {
			_ = unix.Close(fd)
		}
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC)
	}
	_ = null.Close()
}

// exitedOf returns the id of the process that Waitid has found.
func exitedOf(info *unix.Siginfo) int {
	// After signal, error and code comes a union, aligned for a pointer. It begins with
	// the process id.
	words := (*[8]int32)(unsafe.Pointer(info))
	if unsafe.Sizeof(uintptr(0)) == 8 {
		return int(words[4])
	}
	return int(words[3])
}
