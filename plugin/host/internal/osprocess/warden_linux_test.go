package osprocess

import (
	"bufio"
	"context"
	"fmt"
	"io"
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

// ownUntilKilled is a process with a home, a warden and a family, whose process
// ids it prints.
func ownUntilKilled(dir, program string) {
	home, err := MakeHome(dir)
	if err != nil {
		panic(err)
	}
	warden, err := StartWarden(attending, home, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	launch := filepath.Join(home.Path, "launch")
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
	p := New(Spec{Name: program, Binary: binary, Args: args[1:], Env: []string{"PATH=" + os.Getenv("PATH")}, Keeper: attending}, out)
	p.Provision([]string{socketDirVariable + "=" + launch}, launch)
	if err := p.Start(context.Background()); err != nil {
		panic(err)
	}
	for !strings.Contains(out.Excerpt(), "family ") {
		time.Sleep(time.Millisecond)
	}
	warden.mu.Lock()
	_, _ = fmt.Fprintln(os.Stdout, strings.TrimPrefix(out.Excerpt(), "family "))
	select {}
}

func TestNothingOutlivesAnOwnerThatIsKilled(t *testing.T) {
	for program, command := range families {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			owner := exec.CommandContext(t.Context(), os.Args[0])
			owner.Env = append(os.Environ(), "CHILD_TEST_OWNER="+dir, "CHILD_TEST_PROGRAM="+program)
			owner.Stderr = os.Stderr
			out, err := owner.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, owner.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			family := familyOf(t, line)

			require.NoError(t, owner.Process.Signal(syscall.SIGKILL))
			killed := time.Now()
			_ = owner.Wait()
			require.Eventually(t, func() bool {
				homes, err := os.ReadDir(dir)
				return !slices.ContainsFunc(family, lives) && err == nil && len(homes) == 0
			}, 10*time.Second, time.Millisecond)
			require.Less(t, time.Since(killed), 2*time.Second)
		})
	}
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
	_, ok := proctree.Find(pid)
	return ok
}

func TestAWardenThatDiesIsReplaced(t *testing.T) {
	home, err := MakeHome(t.TempDir())
	require.NoError(t, err)
	out := &journal{}
	warden, err := StartWarden(attending, home, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	first := wardenOf(t, home)
	require.NoError(t, syscall.Kill(first, syscall.SIGTERM), "it takes no notice of that")
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.Eventually(t, func() bool { return !lives(first) }, 5*time.Second, time.Millisecond)
	second := wardenOf(t, home)
	require.NotEqual(t, first, second)
	require.Contains(t, out.String(), "signal: killed (SIGKILL)")

	require.NoError(t, home.Remove())
	warden.Close()
	require.False(t, lives(second))
}

// wardenOf waits for the home's warden, until it ignores SIGTERM.
func wardenOf(t *testing.T, home *Home) int {
	t.Helper()
	found := 0
	require.Eventually(t, func() bool {
		for _, pid := range proctree.IDs() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.HasSuffix(string(line), "warden\x00"+home.Path+"\x00") && lives(pid) && ignores(pid, syscall.SIGTERM) {
				found = pid
				return true
			}
		}
		return false
	}, 10*time.Second, 5*time.Millisecond)
	return found
}

func ignores(pid int, signal syscall.Signal) bool {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "SigIgn:")
	mask, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	bits, err := strconv.ParseUint(mask, 16, 64)
	return err == nil && bits&(1<<(signal-1)) != 0
}

func TestAWardenIgnoresAHomeThatIsGone(t *testing.T) {
	home, err := MakeHome(t.TempDir())
	require.NoError(t, err)
	line, hangUp := io.Pipe()
	cleared := make(chan bool, 1)
	go func() { cleared <- sweepAfter(line, home.Path) }()
	require.NoError(t, home.Remove())
	require.NoError(t, hangUp.Close())
	require.True(t, <-cleared)
}

func TestAWardenThatCannotBeStartedIsAnError(t *testing.T) {
	home, err := MakeHome(t.TempDir())
	require.NoError(t, err)
	_, err = StartWarden([]string{"/no/such/program"}, home, slog.New(slog.DiscardHandler))
	require.Error(t, err)
	require.NoError(t, home.Remove())
}
