package conformance_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// envBroken is the variable that makes the test binary a plugin. Its value names the
// rule of the protocol that the plugin breaks; with "good" it breaks none. The plugin
// speaks the protocol without the SDK.
const envBroken = "CONFORMANCE_BROKEN"

// mode is the rule to break.
var mode = os.Getenv(envBroken)

func serveBroken() {
	if os.Getenv(protocol.CookieKey) != cookie() && mode != "serves-anybody" {
		_, _ = fmt.Fprintln(os.Stderr, "I am a handler plugin.")
		os.Exit(1)
	}
	if mode != "ends-at-sigterm" {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	}
	if mode == "dies-at-start" {
		panic("out of luck")
	}
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	if dir == "" {
		dir = os.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprint("s", os.Getpid()))
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		panic(err)
	}
	var limits []grpc.ServerOption
	if mode != "small-messages" {
		limits = append(limits, grpc.MaxRecvMsgSize(protocol.MaxMessageBytes))
	}
	server := grpc.NewServer(limits...)
	service := &handler{idle: make(chan struct{})}
	handlerv1.RegisterHandlerServer(server, service)
	grpc_health_v1.RegisterHealthServer(server, service)
	shakeHands(path)
	go endWithStdin(service)
	if mode == "floods" {
		go flood()
	}
	_ = server.Serve(listener)
}

func cookie() string {
	if mode == "wrong-cookie" {
		return "another-product's-plugin"
	}
	return protocol.CookieValue
}

func shakeHands(path string) {
	switch mode {
	case "no-handshake":
	case "wrong-version":
		_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc|\n", protocol.Version+1, path)
	case "tcp":
		_, _ = fmt.Fprintln(os.Stdout, "1|1|tcp|127.0.0.1:1234|grpc|")
	default:
		_, _ = fmt.Fprintf(os.Stdout, "1|%d|unix|%s|grpc|\n", protocol.Version, path)
	}
}

func endWithStdin(h *handler) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {
	case <-h.idle:
		if mode == "stays-after-drain" {
			return
		}
		if mode == "drains-badly" {
			os.Exit(4)
		}
		os.Exit(0)
	default:
	}
	if mode != "ignores-stdin" {
		os.Exit(3)
	}
}

func flood() {
	for range time.Tick(time.Millisecond) {
		_, _ = fmt.Fprintln(os.Stderr, "still here")
	}
}

// handler serves WORK, which succeeds at once, and SLOW, which waits until it is
// stopped.
type handler struct {
	handlerv1.UnimplementedHandlerServer
	grpc_health_v1.UnimplementedHealthServer

	// busy counts the SLOW attempts. seen has the jobs that were started.
	mu       sync.Mutex
	busy     int
	seen     map[string]bool
	attempts map[uint64]*attempt
	draining bool
	once     sync.Once
	idle     chan struct{}
}

type attempt struct {
	stop  chan handlerv1.Cancel_Reason
	lease *time.Timer
}

func (h *handler) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.mu.Lock()
	busy := h.busy
	h.mu.Unlock()
	if mode == "busy-health" && busy > 0 {
		<-ctx.Done()
	}
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
	if mode == "unhealthy" {
		answer.Status = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return answer, nil
}

func (h *handler) Describe(context.Context, *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	m := &handlerv1.DescribeResponse{Version: "1.0", Concurrency: 3, JobTypes: []*handlerv1.JobType{
		{Name: "WORK", Schema: []byte(`{"type":"object"}`)}, {Name: "SLOW"},
	}}
	switch mode {
	case "bad-schema":
		m.JobTypes[0].Schema = []byte(`{"type":"objekt"}`)
	case "other-schema":
		m.JobTypes[0].Schema = []byte(`{"type":"string"}`)
	case "any-schema":
		m.JobTypes[0].Schema = []byte(`{}`)
	case "bad-terms":
		m.JobTypes[0].Terms = &handlerv1.Terms{ConcurrencyKey: "customer.id", KeyClass: "customer"}
	case "no-types":
		m.JobTypes = nil
	case "twice-declared":
		m.JobTypes[1].Name = "WORK"
	}
	return m, nil
}
