package plugin

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// patience bounds every wait for something that should happen at once.
const patience = 2 * time.Minute

// orchestrator is the other end of the protocol, at its simplest.
type orchestrator struct {
	t      *testing.T
	client handlerv1.HandlerClient
	stream grpc.BidiStreamingClient[handlerv1.WorkRequest, handlerv1.WorkResponse]
	// messages is everything received; it is closed with the stream, whose
	// end is in ended.
	messages chan *handlerv1.WorkResponse
	ended    chan error
	// exited carries why the process would have exited.
	exited chan string
	// drained is closed when the service says that it is drained.
	drained chan struct{}

	last     uint64
	outcomes map[uint64]*handlerv1.Outcome
	seen     []*handlerv1.WorkResponse
}

// serving serves the parts over gRPC, in memory, and opens the stream.
func serving(t *testing.T, parts ...Part) *orchestrator {
	t.Helper()
	return describing(t, nil, parts...)
}

// describing is serving, after Describe was called with what is said; nil for
// without.
func describing(t *testing.T, said *handlerv1.DescribeRequest, parts ...Part) *orchestrator {
	t.Helper()
	b, err := assemble(parts)
	require.NoError(t, err)
	o := &orchestrator{t: t, exited: make(chan string, 10), drained: make(chan struct{})}
	listener := bufconn.Listen(1 << 20)
	grpcServer := newServer(&server{
		binary: b, drained: func() { close(o.drained) }, exit: func(why string) { o.exited <- why },
	})
	go func() { _ = grpcServer.Serve(listener) }()
	t.Cleanup(grpcServer.Stop)
	conn, err := grpc.NewClient("passthrough:///handler",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessageBytes), grpc.MaxCallSendMsgSize(protocol.MaxMessageBytes)))
	require.NoError(t, err)
	if said != nil {
		_, err := handlerv1.NewHandlerClient(conn).Describe(t.Context(), said)
		require.NoError(t, err)
	}
	o.open(conn)
	return o
}

// open opens the Work stream. It is torn down with the test.
func (o *orchestrator) open(conn *grpc.ClientConn) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o.client = handlerv1.NewHandlerClient(conn)
	var err error
	o.stream, err = o.client.Work(ctx)
	require.NoError(o.t, err)
	o.messages = make(chan *handlerv1.WorkResponse, 10_000)
	o.ended = make(chan error, 1)
	o.outcomes = make(map[uint64]*handlerv1.Outcome)
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer close(o.messages)
		for {
			m, err := o.stream.Recv()
			if err != nil {
				o.ended <- err
				return
			}
			o.messages <- m
		}
	}()
	o.t.Cleanup(func() {
		cancel()
		<-received
		require.NoError(o.t, conn.Close())
	})
}

func (o *orchestrator) send(request *handlerv1.WorkRequest) {
	o.t.Helper()
	require.NoError(o.t, o.stream.Send(request))
}

// newStart is a start whose lease and time last.
func (o *orchestrator) newStart(jobType, payload string) *handlerv1.Start {
	o.last++
	return &handlerv1.Start{
		Handle: o.last, JobId: "job-1", JobType: jobType, Tenant: "default", Payload: []byte(payload),
		Attempt: 1, MaxAttempts: 4, Fence: 7, TimeoutMs: 3_600_000, LeaseMs: 3_600_000, CreatedAt: "2026-02-20T01:02:03.456Z",
	}
}

func (o *orchestrator) start(jobType, payload string) uint64 {
	o.t.Helper()
	s := o.newStart(jobType, payload)
	o.send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{s}})
	return s.GetHandle()
}

func (o *orchestrator) cancel(handle uint64, reason handlerv1.Cancel_Reason) {
	o.t.Helper()
	o.send(&handlerv1.WorkRequest{Cancels: []*handlerv1.Cancel{{Handle: handle, Reason: reason}}})
}

// receive waits for the next message.
func (o *orchestrator) receive() *handlerv1.WorkResponse {
	o.t.Helper()
	select {
	case m, ok := <-o.messages:
		require.True(o.t, ok, "the stream has ended")
		o.seen = append(o.seen, m)
		for _, outcome := range m.GetOutcomes() {
			require.NotContains(o.t, o.outcomes, outcome.GetHandle(), "an attempt ends once")
			o.outcomes[outcome.GetHandle()] = outcome
		}
		return m
	case <-time.After(patience):
		require.FailNow(o.t, "no message came")
		return nil
	}
}

func (o *orchestrator) outcome(handle uint64) *handlerv1.Outcome {
	o.t.Helper()
	for o.outcomes[handle] == nil {
		o.receive()
	}
	return o.outcomes[handle]
}

// run starts an attempt and waits for its end.
func (o *orchestrator) run(jobType, payload string) *handlerv1.Outcome {
	o.t.Helper()
	return o.outcome(o.start(jobType, payload))
}

// end waits for the end of the stream, and returns its error; nil when it was
// ended in good order.
func (o *orchestrator) end() error {
	o.t.Helper()
	select {
	case err := <-o.ended:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-time.After(patience):
		require.FailNow(o.t, "the stream does not end")
		return nil
	}
}

func requireNoEnd(t *testing.T, o *orchestrator) {
	t.Helper()
	select {
	case err := <-o.ended:
		require.Fail(t, "the stream has ended", "%v", err)
	default:
	}
}

func TestTheServiceAcceptsWhatTheOrchestratorMaySend(t *testing.T) {
	o := serving(t, HandleResult("LENGTH", func(_ context.Context, j Job[string]) (int, error) { return len(j.Args), nil }))
	text := make([]byte, 5<<20)
	for i := range text {
		text[i] = 'x'
	}
	ended := o.run("LENGTH", `"`+string(text)+`"`)
	require.Equal(t, "5242880", string(ended.GetSucceeded().GetResult()), "gRPC's own limit is 4 MiB")
	require.LessOrEqual(t, protocol.MaxMessageBytes, math.MaxInt32)
}

func TestABrokenStreamIsNotADrain(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan error, 1)
	o := serving(t, Handle("WAIT", func(ctx context.Context, _ Job[any]) error {
		close(begun)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return nil
	}))
	o.start("WAIT", `null`)
	<-begun
	broken := make([]byte, protocol.MaxMessageBytes+1)
	err := o.stream.Send(&handlerv1.WorkRequest{Starts: []*handlerv1.Start{{Payload: broken}}})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Error(t, o.end())
	require.ErrorIs(t, <-stopped, ErrLeaseLost)
	select {
	case <-o.drained:
		require.Fail(t, "the process would exit as if drained")
	default:
	}
}
