package conformance

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-jobs/holdfast/plugin/internal/executable"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/mtls"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// pipeTail is how long output is read after a process has exited, if another
// process holds its pipes open.
const pipeTail = 200 * time.Millisecond

// process is one launch of the plugin.
type process struct {
	options Options
	begun   time.Time
	dir     string
	cmd     *exec.Cmd
	stdin   io.Closer
	out     *output
	conn    *grpc.ClientConn
	handler handlerv1.HandlerClient
	// manifest is its answer to Describe.
	manifest *handlerv1.DescribeResponse
	// others are the descendants that existed before the launch.
	others map[int]string

	// gone is closed when the process is reaped; state is valid from then on.
	gone     chan struct{}
	state    *os.ProcessState
	sessions []*session
}

// fork starts the plugin, with or without the cookie.
func fork(options Options, cookie bool, id mtls.Identity) (*process, error) {
	dir, err := os.MkdirTemp("", "hfc")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	p := &process{options: options, begun: time.Now(), dir: dir, out: newOutput(), gone: make(chan struct{}), others: descendants()}
	p.cmd = &exec.Cmd{Path: options.Path, Args: append([]string{options.Path}, options.Args...), Env: options.Env}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cookie {
		p.cmd.Env = append(append([]string{}, options.Env...),
			protocol.CookieKey+"="+protocol.CookieValue,
			fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", protocol.Version),
			"PLUGIN_MIN_PORT=0", "PLUGIN_MAX_PORT=0",
			"PLUGIN_UNIX_SOCKET_DIR="+dir, "PLUGIN_CLIENT_CERT="+id.PEM())
	}
	if err := p.start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *process) start() error {
	stdin, inErr := p.cmd.StdinPipe()
	stdout, outErr := p.cmd.StdoutPipe()
	stderr, errErr := p.cmd.StderrPipe()
	if err := cmp.Or(inErr, outErr, errErr); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return executable.ExplainStart(err)
	}
	p.stdin = stdin
	p.out.read(stdout, stderr)
	go func() {
		// The command's own Wait would close the pipes before they are read.
		p.state, _ = p.cmd.Process.Wait()
		within(p.out.ended, pipeTail) // so that errors can say what it printed
		close(p.gone)
	}()
	return nil
}

// connect waits for the handshake and opens the connection. Its error says what
// the plugin did wrong.
func (p *process) connect(ctx context.Context, id mtls.Identity) error {
	var line string
	select {
	case line = <-p.out.handshake:
	case <-p.gone:
		select {
		case line = <-p.out.handshake:
		case <-time.After(pipeTail):
			return fmt.Errorf("it printed no handshake line, and ended with %s%s", p.state, p.out.said())
		}
	case <-ctx.Done():
		return fmt.Errorf("it printed no handshake line within %s%s", p.options.StartTimeout, p.out.said())
	}
	path, certificate, err := readHandshake(line, p.dir)
	if err != nil {
		return err
	}
	transport := insecure.NewCredentials()
	if certificate != "" {
		if transport, err = id.Client(certificate); err != nil {
			return err
		}
	}
	return p.dial(path, transport)
}

func (p *process) dial(path string, transport credentials.TransportCredentials) error {
	var err error
	p.conn, err = grpc.NewClient("passthrough:///handler",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}),
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessageBytes), grpc.MaxCallSendMsgSize(protocol.MaxMessageBytes)),
		grpc.WithIdleTimeout(0), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig())
	if err == nil {
		p.handler = handlerv1.NewHandlerClient(p.conn)
	}
	return err
}

func (p *process) healthy(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: protocol.HealthService})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it says %s", answer.GetStatus())
	}
	return nil
}

// closeStdin is how the process learns that its orchestrator is gone.
func (p *process) closeStdin() { _ = p.stdin.Close() }

// leaves reports whether the process exits by itself in time.
func (p *process) leaves(limit time.Duration) bool { return within(p.gone, limit) }

// within reports whether the channel is closed in time.
func within(closed <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
		return false
	}
}

// kill kills the process and its group, as an orchestrator does, and waits for
// its end.
func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
	// Once more: it may have forked in between. Its id is not taken by another
	// while anybody of its group is left.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
}

// end ends everything about the process, and returns the descendants that it
// has left behind, which are killed too.
func (p *process) end() []string {
	for _, s := range p.sessions {
		s.hangUp()
	}
	if p.conn != nil {
		_ = p.conn.Close()
	}
	p.kill()
	left := p.leftBehind()
	p.closeStdin()
	p.out.end()
	_ = os.RemoveAll(p.dir)
	return left
}
