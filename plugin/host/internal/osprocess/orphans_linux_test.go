package osprocess

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/internal/proctree"
)

// families are programs that print the process ids of all their children. One child is
// in their process group, one has its own session, one has lost its parent as well, and
// one also has another environment.
var families = map[string][]string{
	"sh": {"sh", "-c", `
		sleep 1000 & a=$!
		setsid sleep 1000 & b=$!
		c=$(setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')
		d=$(setsid env -i sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')
		echo family $$ $a $b $c $d; wait`},
	"python": {"python3", "-c", `
import os, subprocess, time
def sleeper(**how): return subprocess.Popen(["sleep", "1000"], **how).pid
a, b = sleeper(), sleeper(start_new_session=True)
c = subprocess.run(["setsid", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True).stdout.strip()
d = subprocess.run(["setsid", "env", "-i", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True).stdout.strip()
print("family", os.getpid(), a, b, c, d, flush=True)
time.sleep(1000)`},
	"node": {"node", "-e", `
const { spawn, execFileSync } = require("child_process");
const sleeper = (how) => spawn("sleep", ["1000"], { stdio: "ignore", ...how }).pid;
const a = sleeper({}), b = sleeper({ detached: true });
const c = execFileSync("setsid", ["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], { encoding: "utf8" }).trim();
const d = execFileSync("setsid", ["env", "-i", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"], { encoding: "utf8" }).trim();
console.log("family", process.pid, a, b, c, d);
setTimeout(() => {}, 1e6);`},
}

func init() {
	if dir := os.Getenv("CHILD_TEST_OWNER"); dir != "" {
		ownUntilKilled(dir, strings.Fields(os.Getenv("CHILD_TEST_PROGRAMS")))
	}
}

// ownUntilKilled is a process with a home, and a process with a family for each of the
// programs. For each it prints the ids of its keeper and of its family on one line.
func ownUntilKilled(dir string, programs []string) {
	home, err := MakeHome(dir)
	if err != nil {
		panic(err)
	}
	for i, program := range programs {
		launch := filepath.Join(home.Path, strconv.Itoa(i))
		if err := os.Mkdir(launch, 0o700); err != nil {
			panic(err)
		}
		args := families[program]
		path, err := exec.LookPath(args[0])
		if err != nil {
			panic(err)
		}
		binary, err := binary.Pin(path)
		if err != nil {
			panic(err)
		}
		out := NewOutput(slog.New(slog.DiscardHandler), 100)
		p := New(Spec{Name: program, Binary: binary, Args: args[1:], Env: []string{"PATH=" + os.Getenv("PATH")}}, out)
		p.Provision([]string{socketDirVariable + "=" + launch}, launch)
		if err := p.Start(context.Background()); err != nil {
			panic(err)
		}
		for !strings.Contains(out.Excerpt(), "family ") {
			time.Sleep(time.Millisecond)
		}
		_, _ = fmt.Fprintln(os.Stdout, p.launched.KeeperPID(), out.Excerpt())
	}
	select {}
}

// owner is a running ownUntilKilled.
type owner struct {
	*os.Process
	// keepers and families have an entry for each program.
	keepers  []int
	families [][]int
}

func startOwner(t *testing.T, dir string, programs ...string) *owner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "CHILD_TEST_OWNER="+dir, "CHILD_TEST_PROGRAMS="+strings.Join(programs, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	o := &owner{Process: cmd.Process}
	lines := bufio.NewReader(out)
	for range programs {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		keeper, family, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(keeper)
		require.NoError(t, err, line)
		o.keepers, o.families = append(o.keepers, pid), append(o.families, familyOf(t, family))
	}
	return o
}

func TestNothingOutlivesAnOwnerThatIsKilled(t *testing.T) {
	for program, command := range families {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			owner := startOwner(t, dir, program)
			require.NoError(t, owner.Kill())
			killed := time.Now()
			requireEmpty(t, dir, owner.families[0])
			require.Less(t, time.Since(killed), time.Minute)
		})
	}
}

// requireEmpty waits until the processes are gone, and the directory is empty.
func requireEmpty(t *testing.T, dir string, processes []int) {
	t.Helper()
	require.Eventually(t, func() bool {
		homes, err := os.ReadDir(dir)
		return !slices.ContainsFunc(processes, lives) && err == nil && len(homes) == 0
	}, time.Minute, time.Millisecond)
}

func TestOneLivingKeeperKillsWhatAnotherHasLeft(t *testing.T) {
	dir := t.TempDir()
	owner := startOwner(t, dir, "sh", "sh")
	// The owner cannot notice that a keeper dies.
	require.NoError(t, owner.Signal(syscall.SIGSTOP))
	awaitStopped(t, owner.Pid)
	require.NoError(t, syscall.Kill(owner.keepers[0], syscall.SIGKILL))
	require.NoError(t, owner.Kill())
	// Nobody can find the last one: it has another environment.
	left, lost := owner.families[0][:4], owner.families[0][4]
	t.Cleanup(func() { _ = syscall.Kill(lost, syscall.SIGKILL) })
	requireEmpty(t, dir, slices.Concat(left, owner.families[1], owner.keepers))
}

func TestTheNextStartContinuesStoppedKeepers(t *testing.T) {
	dir := t.TempDir()
	owner := startOwner(t, dir, "sh", "sh")
	for _, keeper := range owner.keepers {
		require.NoError(t, syscall.Kill(keeper, syscall.SIGSTOP))
		awaitStopped(t, keeper)
	}
	require.NoError(t, owner.Kill())
	_, err := owner.Wait()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return Sweep(dir) == 1 }, time.Minute, time.Millisecond)
	requireEmpty(t, dir, slices.Concat(owner.families[0], owner.families[1], owner.keepers))
}

// familyOf reads the ids that a family has printed.
func familyOf(t *testing.T, line string) []int {
	t.Helper()
	words := strings.Fields(strings.TrimPrefix(line, "family "))
	require.Len(t, words, 5, line)
	pids := make([]int, 0, len(words))
	for _, word := range words {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err, line)
		require.True(t, lives(pid))
		pids = append(pids, pid)
	}
	return pids
}

func lives(pid int) bool {
	p, ok := proctree.Find(pid)
	return ok && !p.Ended
}
