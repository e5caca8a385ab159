package osprocess

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// withFamily is a running process with every kind of child.
func withFamily(t *testing.T, program string) (p *Process, family []int) {
	t.Helper()
	args := families[program]
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skip(err)
	}
	p = prepared(t, Spec{Binary: pin(t, path), Args: args[1:]})
	require.NoError(t, p.Start(t.Context()))
	require.Eventually(t, func() bool { return strings.Contains(p.Output().Excerpt(), "family ") },
		time.Minute, time.Millisecond)
	return p, familyOf(t, p.Output().Excerpt())
}

func TestNothingOutlivesAProcess(t *testing.T) {
	for program := range families {
		for name, end := range map[string]func(p *Process){
			"that is ended":        func(p *Process) { p.End() },
			"that is killed":       func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) },
			"that exceeds a limit": func(p *Process) { p.endForLimit(tooManyProcesses(1)) },
		} {
			t.Run(program+" "+name, func(t *testing.T) {
				t.Parallel()
				p, family := withFamily(t, program)
				end(p)
				require.Equal(t, syscall.SIGKILL, death(t, p).Signal)
				require.False(t, slices.ContainsFunc(family, lives), "somebody of %v outlives the process", family)
			})
		}
	}
}

func TestOrphansAreCollected(t *testing.T) {
	t.Parallel()
	p := prepared(t, Spec{Args: []string{"-c", `echo orphan $(setsid sh -c 'sleep 0.01 >/dev/null 2>&1 & echo $!'); exec sleep 1000`}})
	require.NoError(t, p.Start(t.Context()))
	require.Eventually(t, func() bool { return strings.Contains(p.Output().Excerpt(), "orphan ") }, time.Minute, time.Millisecond)
	var orphan string
	_, err := fmt.Sscanf(p.Output().Excerpt(), "orphan %s", &orphan)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + orphan)
		return errors.Is(err, os.ErrNotExist)
	}, time.Minute, time.Millisecond, "it is no zombie")
}

func TestAProcessIsKilledAtItsTimeWithItsDescendants(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		p := prepared(t, Spec{Args: []string{"-c", families["sh"][2]}, Cgroups: tree})
		require.NoError(t, p.Start(t.Context()))
		require.Eventually(t, func() bool { return strings.Contains(p.Output().Excerpt(), "family ") }, time.Minute, time.Millisecond)
		family := familyOf(t, p.Output().Excerpt())
		p.KillAt(time.Now().Add(time.Hour))
		p.KillAt(time.Now())
		died := death(t, p)
		require.Equal(t, Stalled, died.Cause)
		require.ErrorContains(t, died, "killed: the orchestrator did not run")
		require.True(t, p.LeftByItself())
		require.False(t, slices.ContainsFunc(family, lives))
		p.KillAt(time.Now())
	})
}

func TestATimeToKillCanBeTakenBack(t *testing.T) {
	t.Parallel()
	for _, then := range []time.Time{{}, time.Now().Add(time.Hour)} {
		p := prepared(t, Spec{Args: []string{"-c", "read x; exit 5"}})
		require.NoError(t, p.Start(t.Context()))
		stopKeeper(t, p)
		// When the keeper continues, it reads both orders, and the first time has
		// passed.
		p.KillAt(time.Now().Add(-time.Second))
		p.KillAt(then)
		require.NoError(t, syscall.Kill(p.launched.KeeperPID(), syscall.SIGCONT))
		p.CloseStdin()
		require.EqualError(t, death(t, p), "exit status 5")
	}
}

// stopKeeper returns when the keeper is stopped.
func stopKeeper(t *testing.T, p *Process) {
	t.Helper()
	require.NoError(t, syscall.Kill(p.launched.KeeperPID(), syscall.SIGSTOP))
	awaitStopped(t, p.launched.KeeperPID())
}

func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") T ")
	}, time.Minute, time.Millisecond)
}

func TestAKeeperThatIsStoppedIsContinuedToKillItsProcess(t *testing.T) {
	t.Parallel()
	p := prepared(t, Spec{Args: []string{"-c", families["sh"][2]}})
	require.NoError(t, p.Start(t.Context()))
	require.Eventually(t, func() bool { return strings.Contains(p.Output().Excerpt(), "family ") }, time.Minute, time.Millisecond)
	family := familyOf(t, p.Output().Excerpt())
	stopKeeper(t, p)
	p.End()
	require.ErrorContains(t, death(t, p), "SIGKILL")
	require.False(t, slices.ContainsFunc(family, lives))
}

func TestAProcessDiesWithItsKeeper(t *testing.T) {
	t.Parallel()
	p := prepared(t, Spec{Args: []string{"-c", "sleep 1000 & exec sleep 1000"}})
	require.NoError(t, p.Start(t.Context()))
	require.NoError(t, syscall.Kill(p.launched.KeeperPID(), syscall.SIGTERM), "it takes no notice of that")
	require.NoError(t, syscall.Kill(p.launched.KeeperPID(), syscall.SIGKILL))
	require.EqualError(t, death(t, p), "its keeper has ended: signal: killed")
	require.True(t, p.LeftByItself())
	require.Eventually(t, func() bool { return !lives(p.PID()) }, time.Minute, time.Millisecond, "the kernel kills it with its keeper")
	requireNobody(t, p)
}

func TestAKeeperChangesNothingForItsProcess(t *testing.T) {
	t.Parallel()
	const script = `{ ls /proc/self/fd; grep ^Sig[PBIC] /proc/self/status; env | grep -v SOCKET_DIR; pwd; umask; ulimit -a; } >"$0"`
	kept, ours := filepath.Join(t.TempDir(), "kept"), filepath.Join(t.TempDir(), "ours")
	p := prepared(t, Spec{Args: []string{"-c", script, kept}})
	require.NoError(t, p.Start(t.Context()))
	require.Equal(t, Death{}, death(t, p))
	// If something like nohup runs the test, a keeper does not pass on that either.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	child := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, ours)
	child.Env = p.spec.Env
	require.NoError(t, child.Run())
	want, err := os.ReadFile(ours)
	require.NoError(t, err)
	require.NotEmpty(t, want)
	got, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestMembersThatHideAreCounted(t *testing.T) {
	script := `(for i in $(seq 60); do setsid env -i sleep 60 & done); exec sleep 60`
	p := prepared(t, Spec{Args: []string{"-c", script}, Limits: cgroup.Limits{Processes: 50}})
	require.NoError(t, p.Start(t.Context()))
	require.Equal(t, TooManyProcesses, death(t, p).Cause)
	require.Empty(t, proctree.Descendants(os.Getpid(), 0))
}

func TestAKeeperThatCannotBeStartedIsAnError(t *testing.T) {
	for _, program := range []string{"/no/such/program", "/bin/true"} {
		err := prepared(t, Spec{Args: []string{"-c", "exit"}, Keeper: program}).Start(t.Context())
		require.ErrorContains(t, err, "its keeper: ")
	}
}
