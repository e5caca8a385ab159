package osprocess

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal keeps what is logged.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newOutput(linesPerSecond int) (*Output, *journal) {
	j := &journal{}
	return NewOutput(slog.New(slog.NewTextHandler(j, nil)), linesPerSecond), j
}

func TestTheHandshakeIsFoundAmongOtherText(t *testing.T) {
	for line, want := range map[string]string{
		"1|1|unix|/s|grpc|cert":            "1|1|unix|/s|grpc|cert",
		"2|17|tcp|127.0.0.1:1|grpc":        "2|17|tcp|127.0.0.1:1|grpc",
		"Loading ...1|1|unix|/s|grpc":      "1|1|unix|/s|grpc",
		"50 of 511|1|unix|/s|grpc":         "1|1|unix|/s|grpc",
		"hello":                            "",
		"":                                 "",
		"1|1|pigeon|/s|grpc":               "",
		"a | b | unix |":                   "",
		strings.Repeat("1|", 1000) + "end": "",
	} {
		handshake, before := findHandshake([]byte(line))
		require.Equal(t, want, string(handshake), line)
		if want != "" {
			require.Equal(t, line, string(before)+want)
		}
	}
}

func TestLinesAreCutWhereverWritesEnd(t *testing.T) {
	text := "one\ntwo\n\nthree " + strings.Repeat("x", 3*maxLine) + "\nlast"
	want := []string{"one", "two", "", ("three " + strings.Repeat("x", maxLine))[:maxLine], "last"}
	for _, step := range []int{1, 2, 7, 4096, len(text)} {
		var got []string
		l := &Lines{emit: func(line []byte) { got = append(got, string(line)) }}
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			written, err := l.Write([]byte(rest[:n]))
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		l.Flush()
		require.Equal(t, want, got, "in steps of %d", step)
		require.LessOrEqual(t, cap(l.partial), 2*maxLine)
	}
}

func TestOutputIsLoggedAtALimitedRateAndTheRestCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, j := newOutput(3)
		for range 10 {
			out.print("stderr", []byte("again"))
		}
		require.Equal(t, 3, strings.Count(j.String(), "line=again"))
		time.Sleep(time.Second)
		out.print("stderr", []byte("again"))
		require.Equal(t, 4, strings.Count(j.String(), "line=again"))
		require.Contains(t, j.String(), "not_logged=7")
		out.LogSuppressed()
		require.Equal(t, 1, strings.Count(j.String(), "suppressed"))
	})
}

func TestThePanicIsKeptOrElseTheLastLines(t *testing.T) {
	out, _ := newOutput(1)
	for _, line := range strings.Split(strings.Repeat("x ", 20), " ") {
		out.print("stderr", []byte(line))
	}
	out.print("stderr", []byte("end"))
	require.Equal(t, strings.Repeat("x\n", lastLines-1)+"end", out.Excerpt())

	out.print("stderr", []byte("panic: one"))
	out.print("stderr", []byte("panic: two"))
	for range 1000 {
		out.print("stderr", []byte("frame"))
	}
	require.Equal(t, "panic: two"+strings.Repeat("\nframe", traceLines-1), out.Excerpt())
}

func TestSweepRemovesOnlyUnlockedHomes(t *testing.T) {
	dir := t.TempDir()
	held, err := MakeHome(dir)
	require.NoError(t, err)
	lost, err := MakeHome(dir)
	require.NoError(t, err)
	require.NoError(t, lost.lock.Close())
	for _, name := range []string{"hf-without-lock", "other", ".hf-new", ".hf-old"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	old := time.Now().Add(-2 * unlockedFor)
	require.NoError(t, os.Chtimes(filepath.Join(dir, ".hf-old"), old, old))

	require.Equal(t, 1, Sweep(dir))
	require.DirExists(t, held.Path)
	require.NoDirExists(t, lost.Path)
	require.NoDirExists(t, filepath.Join(dir, ".hf-old"))
	for _, name := range []string{"hf-without-lock", "other", ".hf-new"} {
		require.DirExists(t, filepath.Join(dir, name))
	}
	info, err := os.Stat(held.Path)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())

	require.NoError(t, held.Remove())
	require.NoDirExists(t, held.Path)
	require.Zero(t, Sweep(filepath.Join(dir, "missing")))
}

// A keeper may be killed while it sweeps.
func TestWhatASweepLeavesWhenItIsKilledIsSwept(t *testing.T) {
	dir := t.TempDir()
	home, err := MakeHome(dir)
	require.NoError(t, err)
	// The directory above cannot be removed, so that the removal ends in between.
	stuck := filepath.Join(home.Path, "stuck")
	require.NoError(t, os.MkdirAll(filepath.Join(stuck, "below"), 0o700))
	require.NoError(t, os.Chmod(stuck, 0o500))
	_ = home.Remove()
	for _, left := range entries(t, dir) {
		left = filepath.Join(dir, left)
		require.NoError(t, os.Chmod(filepath.Join(left, "stuck"), 0o700))
		old := time.Now().Add(-2 * unlockedFor)
		require.NoError(t, os.Chtimes(left, old, old))
	}
	Sweep(dir)
	require.Empty(t, entries(t, dir))
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, 0, len(found))
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

func TestAHomeStaysWhileItsCgroupCannotBeRemoved(t *testing.T) {
	dir := t.TempDir()
	home, err := MakeHome(dir)
	require.NoError(t, err)
	// A directory that contains a file cannot be removed, just like a cgroup with a
	// process that the kernel cannot kill.
	tree := &cgroup.Tree{Path: filepath.Join(t.TempDir(), home.Name())}
	require.NoError(t, os.Mkdir(tree.Path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tree.Path, "process"), nil, 0o600))
	require.NoError(t, home.SetCgroups(tree))
	require.NoError(t, home.lock.Close())
	require.Zero(t, Sweep(dir))
	require.DirExists(t, home.Path)
	require.NoError(t, os.RemoveAll(tree.Path))
	require.Equal(t, 1, Sweep(dir))
	require.NoDirExists(t, home.Path)
}

func TestADirectoryThatOthersCanChangeIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := MakeHome(dir)
	require.ErrorContains(t, err, "others may write")
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	h, err := MakeHome(dir)
	require.NoError(t, err)
	require.NoError(t, h.Remove())
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 12345, 12345))
		_, err = MakeHome(dir)
		require.ErrorContains(t, err, "belongs to user 12345")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = MakeHome(file)
	require.Error(t, err)
}

// pin holds the binary until the end of the test.
func pin(t *testing.T, path string) *binary.File {
	t.Helper()
	binary, err := binary.Pin(path)
	require.NoError(t, err)
	t.Cleanup(binary.Close)
	return binary
}

// prepared is a shell, or what the specification says, ready to start.
func prepared(t *testing.T, spec Spec) *Process {
	t.Helper()
	out, _ := newOutput(100)
	spec.Name, spec.Env = "sleeper", []string{"PATH=" + os.Getenv("PATH")}
	if spec.Binary == nil {
		spec.Binary = pin(t, "/bin/sh")
	}
	p := New(spec, out)
	dir := t.TempDir()
	p.Provision([]string{socketDirVariable + "=" + dir}, dir)
	t.Cleanup(func() {
		p.End()
		require.True(t, p.Await(time.Minute))
	})
	return p
}

// death waits for the process to be gone.
func death(t *testing.T, p *Process) Death {
	t.Helper()
	select {
	case <-p.Gone():
		return p.Death()
	case <-time.After(time.Minute):
		t.Fatal("the process does not end")
		return Death{}
	}
}

func TestAProcessOutlivesTheThreadThatAskedForIt(t *testing.T) {
	p := prepared(t, Spec{Args: []string{"-c", "exec sleep 1000"}})
	started := make(chan error)
	go func() {
		// The thread ends with the goroutine, which does not unlock it.
		runtime.LockOSThread()
		started <- p.Start(t.Context())
	}()
	require.NoError(t, <-started)
	select {
	case <-p.Gone():
		t.Fatal("the process died with a thread")
	case <-time.After(200 * time.Millisecond):
	}
	p.End()
	<-p.Gone()
	require.Equal(t, Death{Code: -1, Signal: syscall.SIGKILL}, p.Death())
	require.False(t, p.LeftByItself())
}

func TestAProcessThatLeftByItselfIsRecognized(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0": "exit status 0", "exit 7": "exit status 7",
		"kill -9 $$":    "signal: killed (SIGKILL)",
		"kill -SEGV $$": "signal: segmentation fault (SIGSEGV)",
		"kill -TERM $$": "signal: terminated (SIGTERM)",
	} {
		p := prepared(t, Spec{Args: []string{"-c", script}})
		require.NoError(t, p.Start(t.Context()))
		<-p.Gone()
		require.True(t, p.LeftByItself())
		require.EqualError(t, p.Death(), want)
		p.End()
	}
}

func TestEndBeforeStartPreventsTheStart(t *testing.T) {
	p := prepared(t, Spec{Args: []string{"-c", "exec sleep 1000"}})
	p.End()
	require.Error(t, p.Start(t.Context()))
	require.Zero(t, p.PID())
}

func TestStandardInputEndsWhenNobodyNeedsTheProcess(t *testing.T) {
	p := prepared(t, Spec{Args: []string{"-c", "cat; exit 5"}})
	require.NoError(t, p.Start(t.Context()))
	p.CloseStdin()
	<-p.Gone()
	require.EqualError(t, p.Death(), "exit status 5")
}

func TestAFailedStartIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte("#!/no/such/shell\n"), 0o755))
	err := prepared(t, Spec{Binary: pin(t, path)}).Start(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "fork/exec "+path+": no such file or directory: it may be missing itself")
}
