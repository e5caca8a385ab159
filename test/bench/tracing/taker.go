package main

import (
	"context"
	"net"
	"sync/atomic"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// taker is a collector that decodes all spans, as any does, counts them, and keeps none. It is
// in this process, so that its processor time is not the orchestrator's.
type taker struct {
	collect.UnimplementedTraceServiceServer
	endpoint string
	spans    atomic.Int64
	server   *grpc.Server
}

func startTaker(ctx context.Context) (*taker, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &taker{endpoint: "http://" + listener.Addr().String(), server: grpc.NewServer()}
	collect.RegisterTraceServiceServer(t.server, t)
	go func() { _ = t.server.Serve(listener) }() // until stop
	return t, nil
}

func (t *taker) stop() { t.server.Stop() }

// Export implements the collector's service.
func (t *taker) Export(_ context.Context, r *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			t.spans.Add(int64(len(scope.GetSpans())))
		}
	}
	return &collect.ExportTraceServiceResponse{}, nil
}
