package host

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

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// reapPatience is how long a killed process is waited for. Only one that the
// kernel cannot interrupt takes as long; it will never run its own code again.
const reapPatience = 10 * time.Second

// launch brings one process up: fork, handshake, connection, manifest, stream.
// When it returns an error nothing is left of the process, and the error says
// what the process printed last.
func (g *generation) launch(ctx context.Context) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, g.settings.StartTimeout)
	defer cancel()
	spec, err := g.spec()
	if err != nil {
		return nil, err
	}
	c := child.New(spec, child.NewOutput(g.log, g.settings.LinesPerSecond))
	killWhenLate := context.AfterFunc(ctx, c.End)
	p, err := g.connect(ctx, c)
	if err == nil && !killWhenLate() {
		p.hangUp()
		err = ctx.Err()
	}
	if err != nil {
		killWhenLate()
		return nil, g.giveUp(ctx, c, err)
	}
	return p, nil
}

func (g *generation) connect(ctx context.Context, c *child.Process) (*process, error) {
	conn, err := g.shakeHands(c)
	if err != nil {
		return nil, err
	}
	p, err := g.introduce(ctx, c, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return p, nil
}

// shakeHands launches the process through go-plugin and connects to it. Of
// go-plugin's client only Start is used: its Kill, Exited and Ping can block for
// ever, and its own connection is lost when the process misbehaves just then.
func (g *generation) shakeHands(c *child.Process) (*grpc.ClientConn, error) {
	config := &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{wire.Version: {wire.PluginName: &plugin.NetRPCUnsupportedPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         true,
		// Ours comes first: the launch's context kills the process.
		StartTimeout:     g.settings.StartTimeout + time.Second,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: g.fleet.home},
		Logger:           hclog.NewNullLogger(),
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
			c.Provision(cmd.Env, socketDir)
			return c, nil
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
	if address.Network() == "unix" && filepath.Dir(filepath.Clean(address.String())) != c.SocketDir() {
		return nil, fmt.Errorf("its socket %s is not in %s", address, c.SocketDir())
	}
	return dial(address, transport)
}

// How much of what a process sends waits in memory to be read, in bytes: on one
// stream, and on the connection with all of them.
const (
	streamWindow = 256 << 10
	connWindow   = 1 << 20
)

func dial(address net.Addr, transport credentials.TransportCredentials) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///handler",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, address.Network(), address.String())
		}),
		grpc.WithTransportCredentials(transport),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(wire.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(wire.MaxMessageBytes)),
		// A window that grows with the load would hold that much of what a
		// process sends without being asked.
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	)
}

// introduce asks for the manifest, agrees to it and opens the stream.
func (g *generation) introduce(ctx context.Context, c *child.Process, conn *grpc.ClientConn) (*process, error) {
	handler := handlerv1.NewHandlerClient(conn)
	caps := g.settings.Caps
	raw, err := handler.Describe(ctx, &handlerv1.DescribeRequest{
		MaxProgressBytes: uint64(caps.Progress), MaxCheckpointBytes: uint64(caps.Checkpoint), MaxResultBytes: uint64(caps.Result),
	})
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	m, err := message.ReadManifest(g.config.Name, raw)
	if err != nil {
		return nil, refusal{fmt.Errorf("its manifest is refused: %w", err)}
	}
	m = m.Without(g.fleet.configured().leavesOut)
	if err := g.fleet.host.adopt(ctx, g, m); err != nil {
		return nil, err
	}
	work, cancel := context.WithCancel(context.Background())
	stream, err := handler.Work(work, grpc.ForceCodecV2(message.NewCodec()))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("work: %w", err)
	}
	return newProcess(g, c, conn, stream, cancel, m), nil
}

// giveUp kills what has become of a launch, and says why it failed.
func (g *generation) giveUp(ctx context.Context, c *child.Process, err error) error {
	// go-plugin hears of an exit as early as we do.
	select {
	case <-c.Gone():
	case <-ctx.Done():
	case <-time.After(g.settings.ExitWindow / 10):
	}
	c.End()
	if !c.Await(reapPatience) {
		g.log.Error("killed plugin process does not end", "pid", c.PID())
	}
	c.RemoveSocketDir()

	switch {
	case isRefusal(err):
		return err
	case c.LeftByItself():
		err = fmt.Errorf("it ended during its start: %w", c.Death())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it was not up within %s", g.settings.StartTimeout)
	default:
		// go-plugin's words go on for many lines, with advice for its own users.
		first, _, _ := strings.Cut(err.Error(), "\n")
		err = errors.New(first)
	}
	if words := c.Output().Excerpt(); words != "" {
		err = fmt.Errorf("%w; it printed: %s", err, words)
	}
	return err
}

// refusal is a reason against a plugin that another launch will hardly cure.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func isRefusal(err error) bool {
	return errors.As(err, new(refusal)) || errors.Is(err, binary.ErrChecksum) || errors.Is(err, binary.ErrReplaced)
}

// CheckManifest says what is wrong with a manifest, for which a host would
// refuse the process that sends it; nil when it would be taken.
func CheckManifest(raw *handlerv1.DescribeResponse) error {
	_, err := message.ReadManifest("", raw)
	return err
}
