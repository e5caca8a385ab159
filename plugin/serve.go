package plugin

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
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
	exitUsage     = 1
	exitAbandoned = 3
)

// Serve serves the handlers to the orchestrator that launched this process,
// and does not return. It takes handlers, and Version and Concurrency for the
// process as a whole.
//
// From then on standard output is standard error, so that a stray print
// disturbs nothing; the process ignores SIGINT and SIGTERM, which the terminal
// sends to everybody and the orchestrator answers for; and it ends when its
// standard input does, since then the orchestrator is gone.
//
// Started by hand, the process says what it is and exits 1.
func Serve(parts ...Part) {
	b, err := assemble(parts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(exitUsage)
	}
	if os.Getenv(wire.Handshake.MagicCookieKey) != wire.Handshake.MagicCookieValue {
		b.introduce(os.Stderr)
		os.Exit(exitUsage)
	}
	if err := keepStdoutForHandshake(); err != nil {
		exitProcess(err.Error())
	}
	leaveSignalsToOrchestrator()
	var drained atomic.Bool
	go endWithStdin(&drained)
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
		VersionedPlugins: map[int]goplugin.PluginSet{wire.Version: {
			wire.PluginName: &registration{server: &server{
				binary: b, described: printToStderr, drained: func() { drained.Store(true) }, abandon: exitProcess,
			}},
		}},
		GRPCServer: newGRPCServer,
		Logger:     hclog.NewNullLogger(),
	})
}

func newGRPCServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(wire.MaxMessageBytes), grpc.MaxSendMsgSize(wire.MaxMessageBytes))...)
}

// printToStderr undoes what go-plugin does to the standard streams when it
// serves: it would carry them over a stream of its own. The orchestrator reads
// the process's standard error.
func printToStderr() { os.Stdout, os.Stderr = stderr, stderr }

// stderr is the process's standard error, whatever the variable in package os
// says.
var stderr = os.Stderr

// leaveSignalsToOrchestrator takes the signals and does nothing with them. To
// ignore them instead would make every program that a handler starts ignore
// them too.
func leaveSignalsToOrchestrator() {
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
