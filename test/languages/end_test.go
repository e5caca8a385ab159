package languages

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// endsForLease is what a process prints that ends because of a lease.
var endsForLease = regexp.MustCompile(`plugin process ends: [^"]*lease`)

// stopParent stops the parent of the process until resume is called.
func stopParent(t *testing.T, pid int) (resume func()) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	parent, err := strconv.Atoi(strings.Fields(after)[1])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(parent, syscall.SIGSTOP))
	resume = sync.OnceFunc(func() { _ = syscall.Kill(parent, syscall.SIGCONT) })
	t.Cleanup(resume)
	return resume
}

func TestALeaseThatIsNotExtendedEndsTheAttempt(t *testing.T) {
	short := func(a *job.Assignment) { a.LeaseFor = time.Second }
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		outcome := s.run(do("stop"), short)
		require.Equal(t, job.Released, outcome.Kind)
		require.Equal(t, "lease_lost", outcome.Code)

		for n, what := range []string{"ignore", "spin"} {
			_, r := s.begin(do(what), short)
			pid := s.pid()
			// Otherwise the keeper would kill the process a moment before.
			resume := stopParent(t, pid)
			require.Eventually(t, func() bool { return !alive(pid) }, patience, time.Millisecond, "the process ends itself: %s", what)
			resume()
			s.outcome(r)
			require.Eventually(t, func() bool { return len(endsForLease.FindAllString(s.journal.String(), -1)) == n+1 },
				patience, 5*time.Millisecond, "its last line is read: %s", what)
		}

		run, r := s.begin(`{"do":"sleep","seconds":2.5}`, short)
		for len(r.ended) == 0 {
			run.Extend(time.Second)
			time.Sleep(50 * time.Millisecond)
		}
		require.Equal(t, job.Success, s.outcome(r).Kind)
	})
}

func TestADrainedProcessFinishesWhatItHas(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		pid := s.pid()
		_, r := s.begin(`{"do":"sleep","seconds":1}`)
		_, noted := s.begin(`{"do":"report","n":10}`)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		require.NoError(t, s.Close(ctx))
		require.Equal(t, job.Success, s.outcome(r).Kind)
		require.Equal(t, job.Success, s.outcome(noted).Kind)
		require.False(t, alive(pid))
		require.Less(t, time.Since(begun), patience/2)
		require.Zero(t, s.status().Crashes)
	})
}

func TestAKilledProcessCostsItsOwnAttemptsOnly(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		s := supervise(t, l.config())
		_, r := s.begin(do("child"))
		child, err := strconv.Atoi(s.progress(r))
		require.NoError(t, err)
		require.True(t, alive(child))
		require.NoError(t, syscall.Kill(s.pid(), syscall.SIGKILL))
		outcome := s.outcome(r)
		require.Equal(t, job.Crash, outcome.Kind)
		require.Contains(t, outcome.Message, "killed")
		require.False(t, alive(child), "its child is still running")
		require.Equal(t, job.Success, s.run(do("echo")).Kind)
	})
}

func TestNothingOutlivesAKilledHost(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		dir, err := os.MkdirTemp("", "h")
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		victim := exec.CommandContext(t.Context(), os.Args[0])
		victim.Env = append(os.Environ(), hostToBeKilled+"="+l.interpreter+" "+l.handler+" "+dir)
		victim.Stderr = os.Stderr
		out, err := victim.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, victim.Start())
		var handler, child int
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		_, err = fmt.Sscan(line, &handler, &child)
		require.NoError(t, err, line)
		require.True(t, alive(handler) && alive(child))
		require.NoError(t, victim.Process.Kill())
		_ = victim.Wait()
		require.Eventually(t, func() bool { return !alive(handler) && !alive(child) }, patience/2, 10*time.Millisecond)
	})
}

const hostToBeKilled = "LANGUAGES_HOST_TO_BE_KILLED"

// beKilled runs a host that prints the ids of a plugin process and of that process's
// child, and then waits to be killed.
func beKilled(order string) {
	var l interpreted
	var dir string
	_, _ = fmt.Sscan(order, &l.interpreter, &l.handler, &dir)
	h, err := host.Start(context.Background(), settings(dir, io.Discard), []host.Config{l.config()})
	if err != nil {
		panic(err)
	}
	for len(h.Pools()) == 0 {
		<-h.Changed()
	}
	r := &report{ended: make(chan job.Outcome, 1), progress: make(chan string, 1)}
	if _, err := h.Start("test", assignment(do("child")), r); err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, h.Status()[0].PIDs[0], <-r.progress)
	select {}
}

// A process ends when its standard input is closed, even if its parent still runs.
func TestTheEndOfStandardInputEndsTheProcess(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		p := launch(t, l, t.TempDir())
		require.Regexp(t, `^1\|1\|unix\|/.+\|grpc\n$`, p.firstLine())
		require.NoError(t, p.stdin.Close())
		require.Contains(t, p.words(), "plugin process ends: the orchestrator is gone")
		require.Equal(t, 3, p.exitCode())

		// Even while a handler keeps the interpreter busy.
		p = launch(t, l, t.TempDir())
		stream, _ := p.dial(t.Context())
		require.NoError(t, stream.SendMsg(startOf(do("spin"))))
		require.NoError(t, stream.RecvMsg(new(emptypb.Empty)), "its progress")
		time.Sleep(200 * time.Millisecond) // so that it spins
		require.NoError(t, p.stdin.Close())
		require.Contains(t, p.words(), "plugin process ends: the orchestrator is gone")
		require.NotZero(t, p.exitCode())
	})
}

// When the stream breaks, the process stops its attempts and reports that it is not
// healthy. Health is all that a supervisor can still ask for.
func TestALostStreamEndsItsAttempts(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		p := launch(t, l, t.TempDir())
		ctx, cut := context.WithCancel(t.Context())
		defer cut()
		stream, conn := p.dial(ctx)
		health := healthpb.NewHealthClient(conn)
		ask := func(service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
			answer, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			return answer.GetStatus(), err
		}
		for _, service := range []string{"", "plugin"} {
			said, err := ask(service)
			require.NoError(t, err)
			require.Equal(t, healthpb.HealthCheckResponse_SERVING, said)
		}
		_, err := ask("other")
		require.Equal(t, codes.NotFound, status.Code(err))

		require.NoError(t, stream.SendMsg(startOf(do("stop"))))
		require.NoError(t, stream.RecvMsg(new(emptypb.Empty)), "its progress")
		cut()
		require.Eventually(t, func() bool {
			said, err := ask("plugin")
			return err == nil && said == healthpb.HealthCheckResponse_NOT_SERVING
		}, patience, 10*time.Millisecond)
		line, err := p.stderr.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "asked to stop: lease_lost\n", line)
		require.NoError(t, p.stdin.Close())
		require.Equal(t, 3, p.exitCode())
	})
}

// startOf encodes a WorkRequest that starts a job of type TEST. It is written by hand
// because the protocol's Go code is internal to package plugin.
func startOf(payload string) *emptypb.Empty {
	start := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	start = protowire.AppendString(protowire.AppendTag(start, 3, protowire.BytesType), "TEST")
	start = protowire.AppendString(protowire.AppendTag(start, 5, protowire.BytesType), payload)
	for _, milliseconds := range []protowire.Number{9, 10} { // its timeout and its lease
		start = protowire.AppendVarint(protowire.AppendTag(start, milliseconds, protowire.VarintType), 60_000)
	}
	request := new(emptypb.Empty)
	request.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), start))
	return request
}

func TestAProgramThatCannotBeServedSaysWhy(t *testing.T) {
	forEach(t, func(t *testing.T, l interpreted) {
		byHand := launch(t, l, "")
		require.Contains(t, byHand.words(), "It has handlers for the job types\n\n  TEST\n")
		require.Equal(t, 1, byHand.exitCode())

		twice := launch(t, l, t.TempDir(), "twice")
		require.Regexp(t, `^handler\.\w+: job type '?TEST'? has two handlers\n$`, twice.words())
		require.Equal(t, 1, twice.exitCode())
	})
}

// launched is the test plugin without a host.
type launched struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
	stderr *bufio.Reader
}

// launch starts the plugin as an orchestrator does or, without a directory for its
// socket, as a user at a terminal does.
func launch(t *testing.T, l interpreted, sockets string, args ...string) *launched {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	config := l.config(args...)
	p := &launched{t: t, cmd: exec.CommandContext(ctx, config.Path, config.Args...)}
	p.cmd.Env = config.Env
	if sockets != "" {
		p.cmd.Env = append(p.cmd.Env, "PLUGIN_UNIX_SOCKET_DIR="+sockets, "HOLDFAST_HANDLER=holdfast-handler-plugin")
	}
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	words, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	p.stderr = bufio.NewReader(words)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.stdout = bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	return p
}

func (p *launched) firstLine() string {
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		require.NoError(p.t, err, p.words())
	}
	return strings.ReplaceAll(line, "\r", "")
}

// dial connects as an orchestrator does, and opens the stream.
func (p *launched) dial(ctx context.Context) (grpc.ClientStream, *grpc.ClientConn) {
	p.t.Helper()
	address := "unix:" + strings.Split(p.firstLine(), "|")[3]
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = conn.Close() })
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(ctx, both, "/holdfast.handler.v1.Handler/Work")
	require.NoError(p.t, err)
	return stream, conn
}

// words are what the process still prints to standard error before it ends.
func (p *launched) words() string {
	text, _ := io.ReadAll(p.stderr)
	return string(text)
}

func (p *launched) exitCode() int {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}
