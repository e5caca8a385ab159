package plugintest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/inprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// Harness stands in for a plugin process and for the orchestrator at the other end of
// its connection. You may call its methods from any goroutine of the test.
type Harness struct {
	t        testing.TB
	conn     *grpc.ClientConn
	manifest *handlerv1.DescribeResponse
	stream   grpc.BidiStreamingClient[handlerv1.WorkRequest, handlerv1.WorkResponse]
	hangUp   context.CancelFunc
	// served is closed when the server and all handlers have ended, ended when
	// the stream has. endErr is nil after a drain.
	stopServer func()
	served     chan struct{}
	ended      chan struct{}
	endErr     error
	keepers    sync.WaitGroup

	sending sync.Mutex
	mu      sync.Mutex
	last    uint64
	// running are the attempts that have not ended, by handle. closed: no attempt
	// can begin.
	running map[uint64]*Attempt
	closed  bool
}

// Start serves the same parts as plugin.Serve. If plugin.Serve would refuse them, the
// test fails. Everything ends with the test: the contexts of handlers that still run end
// with plugin.ErrLeaseLost, and the test fails if a handler does not return.
func Start(t testing.TB, parts ...plugin.Part) *Harness {
	t.Helper()
	h := &Harness{t: t, served: make(chan struct{}), ended: make(chan struct{}), running: make(map[uint64]*Attempt)}
	untyped := make([]any, 0, len(parts))
	for _, part := range parts {
		untyped = append(untyped, part)
	}
	server, err := inprocess.NewServer(untyped, inprocess.Process{Exit: h.exited, Drained: func() {}}, grpc.WaitForHandlers(true))
	if err != nil {
		t.Fatalf("plugintest: %v", err)
	}
	listener := bufconn.Listen(1 << 20)
	serving := make(chan struct{})
	go func() {
		defer close(serving)
		_ = server.Serve(listener) // until Stop
	}()
	h.stopServer = sync.OnceFunc(func() {
		server.Stop()
		<-serving
		close(h.served)
	})
	t.Cleanup(h.close)
	if err := h.connect(listener); err != nil {
		t.Fatalf("plugintest: %v", err)
	}
	return h
}

func (h *Harness) connect(listener *bufconn.Listener) error {
	var err error
	h.conn, err = grpc.NewClient("passthrough:///handler",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessageBytes), grpc.MaxCallSendMsgSize(protocol.MaxMessageBytes)),
		grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.hangUp = cancel
	client := handlerv1.NewHandlerClient(h.conn)
	if h.manifest, err = client.Describe(ctx, &handlerv1.DescribeRequest{
		MaxProgressBytes: protocol.DefaultMaxProgressBytes, MaxCheckpointBytes: protocol.DefaultMaxCheckpointBytes,
		MaxResultBytes: protocol.DefaultMaxResultBytes,
		MaxFollowUps:   protocol.DefaultMaxFollowUps, MaxFollowUpBytes: protocol.DefaultMaxFollowUpBytes,
	}); err != nil {
		return fmt.Errorf("describe: %w", err)
	}
	if h.stream, err = client.Work(ctx); err != nil {
		return fmt.Errorf("work: %w", err)
	}
	go h.receive()
	return nil
}

// Run starts an attempt and waits for its end. If the context ends before, it stops
// the attempt with plugin.ErrCanceled.
func (h *Harness) Run(ctx context.Context, job Job) Result {
	h.t.Helper()
	a := h.Begin(job)
	defer context.AfterFunc(ctx, func() { a.Stop(plugin.ErrCanceled) })()
	return a.Wait()
}

// Begin starts an attempt. The test fails if the job is invalid.
func (h *Harness) Begin(job Job) *Attempt {
	h.t.Helper()
	if job.Type == "" {
		if len(h.manifest.GetJobTypes()) != 1 {
			h.t.Fatal("plugintest: the job has no Type, and there is more than one handler")
		}
		job.Type = h.manifest.GetJobTypes()[0].GetName()
	}
	var declared *handlerv1.JobType
	if at := slices.IndexFunc(h.manifest.GetJobTypes(), func(d *handlerv1.JobType) bool { return d.GetName() == job.Type }); at >= 0 {
		declared = h.manifest.GetJobTypes()[at]
	}
	a, err := h.begin(job, declared)
	if err != nil {
		h.t.Fatalf("plugintest: job of type %s: %v", job.Type, err)
	}
	h.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{a.start}})
	return a
}

func (h *Harness) begin(job Job, declared *handlerv1.JobType) (*Attempt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.New("the handlers are drained or have ended, and accept no more")
	}
	start, err := job.start(h.last+1, declared)
	if err != nil {
		return nil, err
	}
	h.last++
	a := newAttempt(h, start)
	h.running[h.last] = a
	h.keepers.Go(a.keep)
	return a, nil
}

// Drain asks the handlers to finish what they have and take no more, as an
// orchestrator does that shuts down, and waits until they have. It returns the
// context's error when that ends first; the handlers go on then, and can be
// stopped with plugin.ErrShutdown.
func (h *Harness) Drain(ctx context.Context) error {
	h.mu.Lock()
	first := !h.closed
	h.closed = true
	h.mu.Unlock()
	if first {
		h.send(&handlerv1.WorkRequest{Drain: true})
	}
	select {
	case <-h.ended:
		return h.endErr
	case <-ctx.Done():
		return fmt.Errorf("drain: %w", context.Cause(ctx))
	}
}

// send ignores the end of the stream: receive handles it.
func (h *Harness) send(request *handlerv1.WorkRequest) {
	h.sending.Lock()
	defer h.sending.Unlock()
	_ = h.stream.Send(request)
}

// receive passes on what the handlers report, until the stream ends.
func (h *Harness) receive() {
	defer close(h.ended)
	for {
		message, err := h.stream.Recv()
		if err != nil {
			h.lost(err)
			return
		}
		for _, record := range message.GetLogs() {
			h.hear(record.GetHandle(), func(r *Result) { r.log(record) })
		}
		for _, progress := range message.GetProgress() {
			h.hear(progress.GetHandle(), func(r *Result) { r.Progress = progress.GetProgress() })
		}
		for _, checkpoint := range message.GetCheckpoints() {
			h.hear(checkpoint.GetHandle(), func(r *Result) { r.Checkpoint = checkpoint.GetCheckpoint() })
		}
		for _, outcome := range message.GetOutcomes() {
			h.mu.Lock()
			a := h.running[outcome.GetHandle()]
			delete(h.running, outcome.GetHandle())
			h.mu.Unlock()
			if a != nil {
				close(a.returned)
				a.end(func(r *Result, told error) { r.take(outcome, told) })
			}
		}
	}
}

func (h *Harness) hear(handle uint64, write func(*Result)) {
	h.mu.Lock()
	a := h.running[handle]
	h.mu.Unlock()
	if a != nil {
		a.hear(write)
	}
}

// lost ends the remaining attempts after the end of the stream.
func (h *Harness) lost(err error) {
	if !errors.Is(err, io.EOF) {
		h.endErr = fmt.Errorf("the stream is broken: %w", err)
	}
	h.crashAll("the stream has ended")
}

// exited is called when a plugin process would exit by itself.
func (h *Harness) exited(why string) { h.crashAll("the process would exit: " + why) }

func (h *Harness) crashAll(why string) {
	h.mu.Lock()
	h.closed = true
	left := make([]*Attempt, 0, len(h.running))
	for _, a := range h.running {
		left = append(left, a)
	}
	h.mu.Unlock()
	for _, a := range left {
		a.crash(why)
	}
}

// close ends everything, and fails the test if a handler does not end.
func (h *Harness) close() {
	if h.hangUp != nil {
		h.hangUp()
	}
	go h.stopServer()
	select {
	case <-h.served:
	case <-time.After(killGrace):
		h.t.Errorf("plugintest: %s %s after its context has ended; an orchestrator kills its process", h.stubborn(), killGrace)
	}
	if h.conn != nil {
		_ = h.conn.Close()
	}
	if h.stream != nil {
		<-h.ended
		h.keepers.Wait()
	}
}

// stubborn names the attempts that have not reported their end.
func (h *Harness) stubborn() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, a := range h.running {
		names = append(names, "job "+a.start.GetJobId()+" of type "+a.start.GetJobType())
	}
	if len(names) == 0 {
		return "a part of a handler still runs"
	}
	slices.Sort(names)
	return fmt.Sprint("the handler still runs for ", names)
}
