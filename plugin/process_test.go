package plugin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// processUnderTest is what the test binary does when a test starts it as a
// handler process.
func processUnderTest() {
	if os.Getenv("BY_HAND") == "misconfigured" {
		Serve(Handle("", nothing))
	}
	Serve(
		Version("9"),
		Handle("NOTHING", nothing),
		Handle("WAIT", func(ctx context.Context, j Job[any]) error {
			_ = j.Progress("running")
			<-ctx.Done()
			return nil
		}),
		Handle("STUBBORN", func(_ context.Context, j Job[any]) error {
			_ = j.Progress("running")
			select {}
		}),
		Handle("PRINT", func(context.Context, Job[any]) error {
			_, _ = fmt.Fprint(os.Stdout, "printed to os.Stdout\n", strings.Repeat("o", 1<<20), "\n")
			_, _ = fmt.Fprint(os.Stderr, "printed to os.Stderr\n", strings.Repeat("e", 1<<20), "\n")
			_, err := syscall.Write(1, []byte("printed to file 1\n"))
			return err
		}),
		Handle("CHILD", func(ctx context.Context, _ Job[any]) error {
			child := exec.CommandContext(ctx, "echo", "printed by a child")
			child.Stdout = os.Stdout
			return child.Run()
		}),
		Handle("SIGNAL_CHILD", func(ctx context.Context, _ Job[any]) error {
			return exec.CommandContext(ctx, "sh", "-c", "kill -TERM $$").Run()
		}),
	)
}

// process is a handler process, started as an orchestrator starts it but
// without go-plugin, so that everything it does can be seen.
type process struct {
	*orchestrator
	cmd    *exec.Cmd
	conn   *grpc.ClientConn
	stdin  io.Closer
	stdout *bufio.Reader
	stderr *journal
	exited chan error
}

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

func launch(t *testing.T) *process {
	t.Helper()
	sockets, err := os.MkdirTemp("", "hf") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	p := &process{orchestrator: &orchestrator{t: t}, stderr: new(journal), exited: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), protocol.CookieKey+"="+protocol.CookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+sockets)
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, theirs, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = stdout.Close() })
	p.stdout = bufio.NewReader(stdout)
	p.cmd.Stdout, p.cmd.Stderr = theirs, p.stderr
	require.NoError(t, p.cmd.Start())
	require.NoError(t, theirs.Close())
	gone := make(chan struct{})
	go func() {
		p.exited <- p.cmd.Wait()
		close(gone)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-gone
	})
	require.NoError(t, stdout.SetReadDeadline(time.Now().Add(patience)))
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err, "stderr: %s", p.stderr)
	fields := strings.Split(strings.TrimSpace(line), "|")
	require.Equal(t, []string{"1", "1", "unix"}, fields[:3])
	p.conn, err = grpc.NewClient("unix://"+fields[3], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	return p
}

// work opens the stream.
func (p *process) work() *process {
	p.t.Helper()
	_, err := handlerv1.NewHandlerClient(p.conn).Describe(p.t.Context(), &handlerv1.DescribeRequest{})
	require.NoError(p.t, err)
	p.open(p.conn)
	return p
}

func (p *process) exitCode() int {
	p.t.Helper()
	select {
	case err := <-p.exited:
		if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
			require.NoError(p.t, err)
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.FailNow(p.t, "the process does not exit")
		return 0
	}
}

func TestOnlyTheHandshakeIsOnStandardOutput(t *testing.T) {
	p := launch(t).work()
	require.NotNil(t, p.run("PRINT", `null`).GetSucceeded())
	require.NotNil(t, p.run("CHILD", `null`).GetSucceeded())
	require.NoError(t, p.stdin.Close())
	p.exitCode()
	rest, err := io.ReadAll(p.stdout)
	require.NoError(t, err)
	require.Empty(t, string(rest))
	for _, text := range []string{"printed to os.Stdout\n", "printed to os.Stderr\n", "printed to file 1\n", "printed by a child\n"} {
		require.Contains(t, p.stderr.String(), text)
	}
	require.GreaterOrEqual(t, len(p.stderr.String()), 2<<20)
}

func TestTheProcessServesHealth(t *testing.T) {
	p := launch(t).work()
	got, err := grpc_health_v1.NewHealthClient(p.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, got.GetStatus())
}

func TestADrainedProcessExitsByItself(t *testing.T) {
	p := launch(t).work()
	handle := p.start("WAIT", `null`)
	p.receive()
	p.send(&handlerv1.WorkRequest{Drain: true})
	p.cancel(handle, handlerv1.Cancel_REASON_SHUTDOWN)
	require.NotNil(t, p.outcome(handle).GetSucceeded())
	require.NoError(t, p.end())
	require.Zero(t, p.exitCode(), p.stderr)
}

func TestADrainedProcessExitsWithItsStdinAtTheLatest(t *testing.T) {
	p := launch(t).work()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// A call that does not end keeps the server from stopping.
	watch, err := grpc_health_v1.NewHealthClient(p.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	p.send(&handlerv1.WorkRequest{Drain: true})
	require.NoError(t, p.end())
	require.NoError(t, p.stdin.Close())
	require.Zero(t, p.exitCode(), p.stderr)
}

func TestAProcessWithoutItsOrchestratorExitsAtOnce(t *testing.T) {
	for _, when := range []string{"before it is connected", "with a job that does not stop"} {
		t.Run(when, func(t *testing.T) {
			p := launch(t)
			if when == "with a job that does not stop" {
				p.work().start("STUBBORN", `null`)
				p.receive()
			} else {
				t.Cleanup(func() { _ = p.conn.Close() })
			}
			require.NoError(t, p.stdin.Close())
			require.Equal(t, exitAbandoned, p.exitCode())
			require.Contains(t, p.stderr.String(), "the orchestrator is gone")
		})
	}
}

func TestAProcessThatCannotStopAnAttemptExitsWithItsLease(t *testing.T) {
	p := launch(t).work()
	s := p.newStart("STUBBORN", `null`)
	s.LeaseMs = 300
	begun := time.Now()
	p.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	require.Equal(t, exitAbandoned, p.exitCode())
	require.GreaterOrEqual(t, time.Since(begun), 300*time.Millisecond)
	require.Contains(t, p.stderr.String(), "the lease of job job-1 ran out")
}

func TestAProcessLeavesSignalsToItsOrchestrator(t *testing.T) {
	p := launch(t).work()
	handle := p.start("WAIT", `null`)
	p.receive()
	for range 3 {
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	}
	require.NotNil(t, p.run("NOTHING", `null`).GetSucceeded())
	p.cancel(handle, handlerv1.Cancel_REASON_CANCELED)
	require.NotNil(t, p.outcome(handle).GetSucceeded())
}

func TestAHandlersChildrenDoNotIgnoreSignals(t *testing.T) {
	p := launch(t).work()
	require.Equal(t, "signal: terminated", p.run("SIGNAL_CHILD", `null`).GetFailed().GetMessage())
}

func TestABinaryThatIsRunByHandSaysWhatItIs(t *testing.T) {
	for by, want := range map[string][]string{
		"curious":       {"Holdfast plugin, version 9", "\n  CHILD\n  NOTHING\n  PRINT\n  SIGNAL_CHILD\n  STUBBORN\n  WAIT\n", "\n  plugins:\n    - name: plugin.test\n      path: /"},
		"misconfigured": {`plugin.test: job type "": the name is empty`},
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BY_HAND="+by)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.Error(t, cmd.Run())
		require.Equal(t, exitUnusable, cmd.ProcessState.ExitCode())
		require.Empty(t, stdout.String())
		for _, text := range want {
			require.Contains(t, stderr.String(), text)
		}
	}
}

func TestAProcessThatCannotListenIsUnusable(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), protocol.CookieKey+"="+protocol.CookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR="+t.TempDir()+"/none")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer func() { _ = stdin.Close() }()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, exitUnusable, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "no such file or directory")
}
