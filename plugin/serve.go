package plugin

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// Exit codes of a handler process.
const (
	exitDrained   = 0
	exitUnusable  = 1 // started by hand, or nothing to serve
	exitAbandoned = 3
)

// Serve serves the handlers to the orchestrator that launched this process,
// and does not return. It takes handlers, and Version, Concurrency and OnDrain
// for the process as a whole.
//
// From then on standard output is standard error, so that a stray print
// disturbs nothing; the process takes no notice of SIGINT and SIGTERM, which a
// terminal sends to everybody and the orchestrator answers for; and it ends
// when its standard input does, since then the orchestrator is gone. Its heap
// grows by 16 MB at least before it is collected.
//
// Started by hand, the process says what it is and exits 1.
func Serve(parts ...Part) {
	b, err := assemble(parts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(exitUnusable)
	}
	if os.Getenv(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue {
		b.introduce(os.Stderr)
		os.Exit(exitUnusable)
	}
	os.Exit(serve(b))
}

// serve returns the exit code.
func serve(b binary) int {
	streams, err := divertStreams()
	if err != nil {
		exitProcess(err.Error())
	}
	takeSignals()
	defer raiseHeapFloor()()
	var connected, drained atomic.Bool
	var grpcServer *grpc.Server
	service := &server{
		binary: b,
		connected: func() {
			connected.Store(true)
			if err := streams.reclaim(); err != nil {
				exitProcess(err.Error())
			}
		},
		drained: func() {
			drained.Store(true)
			go grpcServer.GracefulStop()
		},
		exit: exitProcess,
	}
	go endWithStdin(&drained)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{wire.Version: {wire.PluginName: service}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			grpcServer = newGRPCServer(options)
			streams.lend()
			return grpcServer
		},
		Logger: hclog.New(&hclog.LoggerOptions{Name: "go-plugin", Level: hclog.Error, Output: stderr}),
	})
	if !connected.Load() {
		return exitUnusable
	}
	return exitDrained
}

// heapFloor is by how much the heap may grow at least before it is collected,
// in bytes. Short jobs leave little but garbage: at the runtime's own pace, every
// four megabytes, collecting took a fifth of the process's CPU.
const heapFloor = 16 << 20

// raiseHeapFloor makes it so until release is called: by an allocation that the
// collector counts and nobody touches, so that it takes no memory.
func raiseHeapFloor() (release func()) {
	untouched := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(untouched) }
}

// takeSignals takes the signals and does nothing with them. To ignore them
// instead would make every program that a handler starts ignore them too.
func takeSignals() {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
}

// endWithStdin ends the process when the orchestrator closes the other end:
// because it has received everything from a process that it drained, or
// because it is gone.
func endWithStdin(drained *atomic.Bool) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if drained.Load() {
		os.Exit(exitDrained)
	}
	exitProcess("the orchestrator is gone")
}

// exitProcess ends the process with a word of explanation.
func exitProcess(why string) {
	fmt.Fprintln(stderr, "handler process ends:", why)
	os.Exit(exitAbandoned)
}
