// Hostile is a plugin that misbehaves on request, for the tests of the host. Flags say
// how the process behaves, and "do" in the payload says how an attempt behaves. It
// speaks the protocol directly, without the SDK. The tests also run it as their keepers.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	_ "github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess" // runs keepers
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

var (
	mode     = flag.String("mode", "good", "how the process behaves")
	types    = flag.String("types", "TEST", "job types, separated by commas")
	version  = flag.String("version", "1.0", "version in the manifest")
	wish     = flag.Uint("concurrency", 0, "concurrency in the manifest")
	bound    = flag.Uint("bound", 0, "concurrency of the first type in the manifest")
	failing  = flag.Float64("failing", 0, "the part of the attempts that fail")
	delay    = flag.Duration("delay", 0, "how long each attempt takes before it does anything")
	cold     = flag.Duration("cold", 0, "how long the first attempts take that begin at once")
	crashing = flag.Bool("crashing", false, "whether an attempt ends the process")
	schema   = flag.String("schema", `{"type":"object"}`, "schema in the manifest")
	launches = flag.String("launches", "", "file that gets a line for each launch")
)

func main() {
	_ = flag.CommandLine.Parse(append(os.Args[1:], stamped()...))
	note(*launches, "%d %d", os.Getpid(), time.Now().UnixMilli())
	version := protocol.Version
	switch *mode {
	case "exit":
		os.Exit(1)
	case "panic":
		panic("out of luck")
	case "print":
		_, _ = os.Stdout.WriteString("hello\nloading | 1 | 2\n" + strings.Repeat("x", 100_000) + "\nno end here ")
	case "garbage":
		_, _ = os.Stdout.WriteString("this is no handshake\n")
		time.Sleep(time.Hour)
	case "endless":
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("y", 1000) + "\n")
		}
	case "silent":
		time.Sleep(time.Hour)
	case "cunning":
		// Turn off the signal that is tied to the end of the host.
		flags, err := unix.FcntlInt(0, unix.F_GETFL, 0)
		if err != nil || flags&unix.O_ASYNC == 0 {
			panic("the standard input is not tied to the host")
		}
		if _, err := unix.FcntlInt(0, unix.F_SETFL, flags&^unix.O_ASYNC); err != nil {
			panic(err)
		}
	case "slow":
		time.Sleep(700 * time.Millisecond)
	case "version":
		version = 99
	case "plain":
		servePlainly()
		return
	case "elsewhere":
		_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|/var/run/elsewhere.sock|grpc|\n", protocol.Version)
		time.Sleep(time.Hour)
	case "mute":
		_, path := listen()
		_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc|\n", protocol.Version, path)
		time.Sleep(time.Hour)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{version: {protocol.PluginName: &service{}}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, limits()...)...)
		},
		Logger: hclog.NewNullLogger(),
	})
}

// stamped are the flags at the end of the binary itself, after the stamp. With them,
// two versions behave differently with the same arguments.
func stamped() []string {
	const stamp = "\nhostile flags: "
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	defer func() { _ = self.Close() }()
	tail := make([]byte, 4096)
	if _, err := self.Seek(-int64(len(tail)), io.SeekEnd); err != nil {
		panic(err)
	}
	if _, err := io.ReadFull(self, tail); err != nil {
		panic(err)
	}
	_, flags, _ := strings.Cut(string(tail), stamp)
	return strings.Fields(flags)
}

func limits() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.MaxRecvMsgSize(protocol.MaxMessageBytes), grpc.MaxSendMsgSize(protocol.MaxMessageBytes)}
}

type service struct {
	plugin.NetRPCUnsupportedPlugin
}

func (*service) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if *mode != "undescribed" {
		handlerv1.RegisterHandlerServer(s, &handler{})
	}
	return nil
}

func (*service) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}

// healthy is the health service, in the mode "plain".
var healthy = health.NewServer()

// servePlainly serves as a plugin in another language would: a handshake line, the health
// service, the handler service; no TLS, no other service.
func servePlainly() {
	listener, path := listen()
	server := grpc.NewServer(limits()...)
	healthy.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	handlerv1.RegisterHandlerServer(server, &handler{})
	_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc\n", protocol.Version, path)
	if err := server.Serve(listener); err != nil {
		os.Exit(1)
	}
}

func listen() (net.Listener, string) {
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		panic(err)
	}
	return watchedListener{listener}, path
}

// watchedListener makes connections that notice when a result is on its way.
type watchedListener struct{ net.Listener }

func (l watchedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return watchedConn{conn}, err
}

type watchedConn struct{ net.Conn }

// resultSent is closed when the result of "finish-and-exit" has been written to its
// connection; gRPC's Send returns before. It works in the mode "plain", without TLS.
var (
	resultSent     = make(chan struct{})
	onceResultSent sync.Once
)

func (c watchedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b[:n], []byte(finished)) {
		onceResultSent.Do(func() { close(resultSent) })
	}
	return n, err
}

func note(path, format string, values ...any) {
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(file, format+"\n", values...)
	_ = file.Close()
}
