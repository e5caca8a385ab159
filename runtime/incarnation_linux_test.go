package runtime

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	stdruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEveryWorkerHasItsOwnID(t *testing.T) {
	first, second := NewWorker("w", job.AllRoles()), NewWorker("w", job.AllRoles())
	require.NotEqual(t, first.ID, second.ID)
	require.True(t, strings.HasPrefix(first.ID, "w/"))
	require.Equal(t, first.Host, second.Host)
	require.NotEqual(t, unknownHost, first.Host)
	require.Equal(t, os.Getpid(), first.PID)
	require.Positive(t, first.PIDStarted)
}

func TestAProcessIsGoneOnlyWhenThatIsCertain(t *testing.T) {
	own := NewWorker("w", job.AllRoles())
	require.False(t, processGone(own), "we live")

	reused := own
	reused.PIDStarted--
	require.True(t, processGone(reused), "our process id once was another's")

	elsewhere := reused
	elsewhere.Host = unknownHost
	require.False(t, processGone(elsewhere), "nobody can look there")

	require.True(t, processGone(job.Worker{Host: own.Host, PID: math.MaxInt32, PIDStarted: 1}), "there never was one")
}

func TestADeadChildIsGoneEvenAsAZombie(t *testing.T) {
	child := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, child.Start())
	started, known := startOf(child.Process.Pid)
	require.True(t, known)
	require.Positive(t, started)
	worker := job.Worker{Host: host(), PID: child.Process.Pid, PIDStarted: started}
	require.False(t, processGone(worker))

	require.NoError(t, child.Process.Kill())
	require.Eventually(t, func() bool { return processGone(worker) }, patience, time.Millisecond, "dead, not yet buried")
	require.Error(t, child.Wait())
	require.True(t, processGone(worker))
}

// leaderExits has the first thread of this process end, and the others go on until
// standard input does.
const leaderExits = "HOLDFAST_TEST_LEADER_EXITS"

func init() {
	if os.Getenv(leaderExits) == "" {
		return
	}
	// The scheduler does not know that the thread ends, so nothing here needs it later.
	stdruntime.GOMAXPROCS(4)
	reading := make(chan struct{})
	go func() {
		stdruntime.LockOSThread()
		close(reading)
		var unused [1]byte
		n := uintptr(1)
		for n == 1 {
			n, _, _ = syscall.RawSyscall(syscall.SYS_READ, 0, uintptr(unsafe.Pointer(&unused)), 1)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}()
	<-reading
	stdruntime.LockOSThread() // the first thread runs this
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

// A process that is killed ends thread by thread. Its files are closed, and its
// handlers killed for it, when the last of them has.
func TestAProcessIsNotGoneWhileOneOfItsThreadsLives(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), leaderExits+"=1")
	input, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	stat := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return strings.Contains(stat(), ") Z ") }, patience, time.Millisecond, "its first thread has ended")
	started, known := startOf(child.Process.Pid)
	require.True(t, known)
	require.Positive(t, started)
	worker := job.Worker{Host: host(), PID: child.Process.Pid, PIDStarted: started}
	require.False(t, processGone(worker))
	require.NoError(t, input.Close())
	require.Eventually(t, func() bool { return processGone(worker) }, patience, time.Millisecond, "all have")
	require.NoError(t, child.Wait())
}

// The name of a program may look like the fields that follow it.
func TestAProcessWithAnyNameCanBeChecked(t *testing.T) {
	odd := filepath.Join(t.TempDir(), ") Z 1 2 (")
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sleep, odd))
	child := exec.CommandContext(t.Context(), odd, "1000")
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Wait() })
	comm, err := os.ReadFile("/proc/" + strconv.Itoa(child.Process.Pid) + "/comm")
	require.NoError(t, err)
	require.Equal(t, ") Z 1 2 (\n", string(comm))
	own, _ := startOf(os.Getpid())
	started, known := startOf(child.Process.Pid)
	require.True(t, known)
	require.GreaterOrEqual(t, started, own)
	require.NoError(t, child.Process.Kill())
}

// A worker that has run out of open files must not take its neighbours for
// dead.
func TestALiveProcessThatCannotBeReadIsNotGone(t *testing.T) {
	own := NewWorker("w", job.AllRoles())
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, known := startOf(own.PID)
	gone := processGone(own)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.False(t, known)
	require.False(t, gone)
}
