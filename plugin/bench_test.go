package plugin

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// BenchmarkJobs runs attempts that do nothing through a real stream on a unix
// socket, so many at once, and reports what a job costs both ends together in
// CPU. Measured on two busy cores:
//
//	1 at once      26 µs of CPU a job
//	100 at once    10 µs
func BenchmarkJobs(b *testing.B) {
	for name, atOnce := range map[string]int{"1_at_once": 1, "100_at_once": 100} {
		b.Run(name, func(b *testing.B) { benchmarkJobs(b, atOnce) })
	}
}

func benchmarkJobs(b *testing.B, atOnce int) {
	stream := servingOnSocket(b, Handle("NOTHING", func(context.Context, Job[point]) error { return nil }))
	begun := cpuTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	started, ended := 0, 0
	start := func(n int) {
		request := new(handlerv1.WorkRequest)
		for ; n > 0 && started < b.N; n-- {
			started++
			request.Starts = append(request.Starts, &handlerv1.Start{
				Handle: uint64(started), JobId: "01234567-89ab-cdef-0123-456789abcdef", JobType: "NOTHING", Tenant: "default",
				Payload: []byte(`{"x":1,"y":2}`), Attempt: 1, MaxAttempts: 4, Fence: 1, TimeoutMs: 60_000, LeaseMs: 30_000,
				CreatedAt: "2026-02-20T01:02:03.456Z",
			})
		}
		if len(request.GetStarts()) > 0 {
			require.NoError(b, stream.Send(request))
		}
	}
	start(atOnce)
	for ended < b.N {
		m, err := stream.Recv()
		require.NoError(b, err)
		ended += len(m.GetOutcomes())
		start(len(m.GetOutcomes()))
	}
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-begun).Nanoseconds())/float64(b.N), "cpu-ns/op")
	require.NoError(b, stream.CloseSend())
}

// servingOnSocket serves the handler as a process does, but without TLS.
func servingOnSocket(b *testing.B, h Handler) grpc.BidiStreamingClient[handlerv1.WorkRequest, handlerv1.WorkResponse] {
	parts, err := assemble([]Part{h})
	require.NoError(b, err)
	listener, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	require.NoError(b, err)
	grpcServer := newServer(&server{
		binary: parts, drained: func() {}, exit: func(why string) { panic(errors.New(why)) },
	})
	go func() { _ = grpcServer.Serve(listener) }()
	b.Cleanup(grpcServer.Stop)
	conn, err := grpc.NewClient("unix://"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	stream, err := handlerv1.NewHandlerClient(conn).Work(b.Context())
	require.NoError(b, err)
	return stream
}

// cpuTime is what this process has used of all CPUs.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
