package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Refuse marks an error that another launch would probably repeat.
func Refuse(err error) error { return refusal{err} }

// IsRefusal reports whether the error was marked by Refuse, or is that of a binary which
// may not be executed.
func IsRefusal(err error) bool {
	return errors.As(err, new(refusal)) || errors.Is(err, binary.ErrChecksum) || errors.Is(err, binary.ErrReplaced)
}

// Launch starts a process: fork, handshake, connection, manifest, stream. If it
// returns an error nothing is left of the process, and the error quotes its last
// output.
func Launch(ctx context.Context, spec Spec, owner Owner) (*Process, error) {
	ctx, cancel := context.WithTimeout(ctx, spec.StartTimeout)
	defer cancel()
	p := &Process{
		spec: spec, owner: owner,
		child:    osprocess.New(spec.Child, osprocess.NewOutput(spec.Log, spec.Settings.LinesPerSecond)),
		attempts: make(map[uint64]*Attempt), queued: loop.NewSignal(),
		idle: make(chan struct{}), failed: make(chan error, 1), received: make(chan struct{}),
	}
	killWhenLate := context.AfterFunc(ctx, p.child.End)
	var err error
	if p.conn, err = p.shakeHands(); err == nil {
		err = p.openStream(ctx)
	}
	if err == nil && !killWhenLate() {
		err = ctx.Err()
	}
	if err == nil {
		p.UpSince = time.Now()
		return p, nil
	}
	killWhenLate()
	if p.stream != nil {
		p.cancel()
	}
	if p.conn != nil {
		_ = p.conn.Close()
	}
	return nil, p.abandonLaunch(ctx, err)
}

// shakeHands starts the process through go-plugin and connects to it. It uses only
// Start of go-plugin's client: Kill, Exited and Ping can block for ever, and its own
// connection is lost if the process misbehaves at the wrong moment.
func (p *Process) shakeHands() (*grpc.ClientConn, error) {
	config := &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: &plugin.NetRPCUnsupportedPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         true,
		// Our own timeout comes first and kills the process.
		StartTimeout:     p.spec.StartTimeout + time.Second,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.spec.SocketDir},
		Logger:           hclog.NewNullLogger(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			p.child.Provision(cmd.Env, socketDir)
			return p.child, nil
		},
	}
	address, err := plugin.NewClient(config).Start()
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	switch {
	case config.TLSConfig.RootCAs != nil:
		transport = credentials.NewTLS(config.TLSConfig)
	case address.Network() != "unix":
		return nil, errors.New("it sent no certificate and does not listen on a unix socket")
	}
	if address.Network() == "unix" && filepath.Dir(filepath.Clean(address.String())) != p.child.SocketDir() {
		return nil, fmt.Errorf("its socket %s is not in %s", address, p.child.SocketDir())
	}
	// Again, our own timeout comes first, also when timers are late on a busy machine: it
	// gives the better reason.
	return dial(address, transport, p.spec.StartTimeout+time.Minute)
}

// These bound how many unread bytes from a process are kept in memory, for one stream
// and for the whole connection.
const (
	streamWindow = 256 << 10
	connWindow   = 1 << 20
)

// dial connects soon. The process may take its time to answer, while it starts.
func dial(address net.Addr, transport credentials.TransportCredentials, patience time.Duration) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///handler",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, address.Network(), address.String())
		}),
		grpc.WithTransportCredentials(transport),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: patience}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(protocol.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(protocol.MaxMessageBytes)),
		// Windows that grow with the load would let a process fill the memory.
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
}

// openStream asks for the manifest, passes it to the owner, and opens the stream.
func (p *Process) openStream(ctx context.Context) error {
	handler := handlerv1.NewHandlerClient(p.conn)
	caps := p.spec.Settings.Caps
	raw, err := handler.Describe(ctx, &handlerv1.DescribeRequest{
		MaxProgressBytes: uint64(caps.Progress), MaxCheckpointBytes: uint64(caps.Checkpoint), MaxResultBytes: uint64(caps.Result),
		MaxFollowUps: uint32(caps.FollowUps), MaxFollowUpBytes: uint64(caps.FollowUpBytes),
	})
	if err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	m, err := message.ReadManifest(p.spec.Plugin, raw)
	if err != nil {
		return Refuse(fmt.Errorf("its manifest is refused: %w", err))
	}
	if p.Manifest, err = p.owner.Adopt(ctx, m); err != nil {
		return err
	}
	work, cancel := context.WithCancel(context.Background())
	stream, err := handler.Work(work, grpc.ForceCodecV2(message.NewCodec()))
	if err != nil {
		cancel()
		return fmt.Errorf("work: %w", err)
	}
	p.stream, p.cancel = stream, cancel
	return nil
}

// abandonLaunch kills what was started, and says why the launch failed.
func (p *Process) abandonLaunch(ctx context.Context, err error) error {
	c := p.child
	// go-plugin may notice an exit slightly before we do.
	select {
	case <-c.Gone():
	case <-ctx.Done():
	case <-time.After(p.spec.Settings.ExitWindow / 10):
	}
	c.End()
	if !c.Await(ReapTimeout) {
		p.spec.Log.Error("killed plugin process does not end", "pid", c.PID())
	}
	c.RemoveSocketDir()

	switch {
	case IsRefusal(err):
		return err
	case c.LeftByItself():
		err = fmt.Errorf("it ended during its start: %w", c.Death())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it was not up within %s", p.spec.StartTimeout)
	default:
		// go-plugin's errors go on for many lines, with advice for its own users.
		first, _, _ := strings.Cut(err.Error(), "\n")
		err = errors.New(first)
	}
	if excerpt := c.Output().Excerpt(); excerpt != "" {
		err = &printed{err, excerpt}
	}
	return err
}

// printed is why a launch failed, with what the process printed.
type printed struct {
	error
	excerpt string
}

func (p *printed) Error() string { return p.error.Error() + p.suffix() }
func (p *printed) Unwrap() error { return p.error }

func (p *printed) suffix() string { return "; it printed: " + p.excerpt }

// WithoutOutput is the text of an error without what a process has printed, which may be
// secret.
func WithoutOutput(err error) string {
	text := err.Error()
	if p := (*printed)(nil); errors.As(err, &p) {
		text = strings.ReplaceAll(text, p.suffix(), "")
	}
	return text
}
