package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-jobs/holdfast/plugin/internal/mtls"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/plugin/internal/stdio"
)

// Exit codes of a plugin process.
const (
	exitDrained   = 0
	exitUnusable  = 1 // run by hand, nothing to serve, or cannot listen
	exitAbandoned = 3
)

// stderr is the process's standard error, even if a handler assigns os.Stderr.
var stderr = os.Stderr

// Serve serves the handlers to the orchestrator that launched this process, and
// does not return. It takes handlers, and Version, Concurrency and OnDrain for the
// process as a whole. If they cannot be served, it says why on standard error and
// exits with 1.
//
// From then on:
//
//   - Standard output is standard error, so a stray print disturbs nothing.
//   - SIGINT and SIGTERM do nothing. A terminal sends them to every process; the
//     orchestrator decides when this one ends.
//   - When standard input ends, the orchestrator is gone and the process ends.
//   - The heap grows by at least 16 MB between two garbage collections.
//
// Run by hand, the process says what it is and exits with 1.
func Serve(parts ...Part) {
	b, err := assemble(parts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(exitUnusable)
	}
	if os.Getenv(protocol.CookieKey) != protocol.CookieValue {
		b.introduce(os.Stderr)
		os.Exit(exitUnusable)
	}
	if err := serve(b); err != nil {
		fmt.Fprintln(stderr, "the plugin cannot be served:", err)
		os.Exit(exitUnusable)
	}
	os.Exit(exitDrained)
}

// serve returns nil when the process is drained.
func serve(b binary) error {
	stdout, err := stdio.Divert()
	if err != nil {
		return err
	}
	takeSignals()
	defer raiseHeapFloor()()
	transport, certificate, err := transportOf(os.Getenv("PLUGIN_CLIENT_CERT"))
	if err != nil {
		return err
	}
	path := filepath.Join(cmp.Or(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), os.TempDir()), fmt.Sprintf("plugin%d", os.Getpid()))
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return err
	}
	var drained atomic.Bool
	var s *grpc.Server
	s = newServer(&server{
		binary:  b,
		drained: func() { drained.Store(true); go s.GracefulStop() },
		exit:    exitProcess,
	}, grpc.Creds(transport))
	healthy := health.NewServer()
	healthy.SetServingStatus(protocol.HealthService, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(s, healthy)
	go exitWithStdin(&drained)
	fmt.Fprintf(stdout, "1|%d|unix|%s|grpc|%s\n", protocol.Version, path, certificate)
	_ = stdout.Close()
	return s.Serve(listener)
}

// transportOf secures the connection with a certificate of this process, which goes
// into the handshake, when the orchestrator has sent its own.
func transportOf(orchestrator string) (transport credentials.TransportCredentials, certificate string, err error) {
	if orchestrator == "" {
		return insecure.NewCredentials(), "", nil
	}
	identity, err := mtls.New()
	if err != nil {
		return nil, "", fmt.Errorf("certificate: %w", err)
	}
	transport, err = identity.Server(orchestrator)
	if err != nil {
		return nil, "", fmt.Errorf("PLUGIN_CLIENT_CERT: %w", err)
	}
	return transport, identity.Base64(), nil
}

// heapFloor is how many bytes the heap may grow before it is collected, at least.
// Short jobs leave little but garbage: collecting it every four megabytes, as the
// runtime does by itself, took a fifth of the process's CPU.
const heapFloor = 16 << 20

// raiseHeapFloor raises it until release is called, with an allocation that the
// collector counts and nobody touches, so that it takes no memory.
func raiseHeapFloor() (release func()) {
	untouched := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(untouched) }
}

// takeSignals receives the signals and does nothing. Programs that a handler starts
// would inherit signals that are ignored.
func takeSignals() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
}

// exitWithStdin ends the process when its standard input ends. The orchestrator has
// then received everything from a drained process, or it is gone.
func exitWithStdin(drained *atomic.Bool) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if drained.Load() {
		os.Exit(exitDrained)
	}
	exitProcess("the orchestrator is gone")
}

// exitProcess ends the process and says why.
func exitProcess(why string) {
	fmt.Fprintln(stderr, "plugin process ends:", why)
	os.Exit(exitAbandoned)
}
