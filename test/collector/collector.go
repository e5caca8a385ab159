// Package collector is an OpenTelemetry collector for tests. It accepts spans over OTLP,
// by gRPC and HTTP, and keeps them.
package collector

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was received.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent is empty for a root span
	Name              string
	Kind              otlp.Span_SpanKind
	Start, End        time.Time
	Attributes        map[string]any
	Events            []Event
	Links             []Link
	Failed            bool
	Status            string
	Resource          map[string]any
}

// Event is something that happened during a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes map[string]any
}

// Link refers to another span.
type Link struct {
	Trace, Span string
	Attributes  map[string]any
}

// Collector keeps the spans that it receives.
type Collector struct {
	collect.UnimplementedTraceServiceServer
	// GRPC and HTTP are the endpoints.
	GRPC, HTTP string

	mu      sync.Mutex
	spans   []Span
	sent    strings.Builder
	headers []http.Header
	changed chan struct{}
}

// Start returns a collector that listens on the loopback until the end of the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{changed: make(chan struct{})}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	collect.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	c.GRPC = "http://" + listener.Addr().String()

	webListener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	web := &http.Server{Handler: http.HandlerFunc(c.post), ReadHeaderTimeout: time.Minute}
	webServed := make(chan error, 1)
	go func() { webServed <- web.Serve(webListener) }()
	t.Cleanup(func() {
		_ = web.Close()
		require.ErrorIs(t, <-webServed, http.ErrServerClosed)
	})
	c.HTTP = "http://" + webListener.Addr().String()
	return c
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, r *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	c.keep(r)
	return &collect.ExportTraceServiceResponse{}, nil
}

func (c *Collector) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := new(collect.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint("no spans: ", err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.headers = append(c.headers, r.Header)
	c.mu.Unlock()
	c.keep(request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) keep(r *collect.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent.WriteString(prototext.Format(r))
	c.spans = append(c.spans, readAll(r.GetResourceSpans())...)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Sent is everything that was received, as text.
func (c *Collector) Sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent.String()
}

// Headers are the headers of the HTTP requests.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Spans returns all spans received so far, sorted by their start.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sorted(c.spans)
}

// Await returns all spans as soon as wanted accepts them. When the context ends, it
// returns those received so far, and an error.
func (c *Collector) Await(ctx context.Context, wanted func([]Span) bool) ([]Span, error) {
	for {
		c.mu.Lock()
		all, changed := sorted(c.spans), c.changed
		c.mu.Unlock()
		if wanted(all) {
			return all, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return all, fmt.Errorf("the expected spans did not arrive; there are %d", len(all))
		}
	}
}

func sorted(spans []Span) []Span {
	return slices.SortedStableFunc(slices.Values(spans), func(a, b Span) int { return a.Start.Compare(b.Start) })
}

func readAll(resources []*otlp.ResourceSpans) (spans []Span) {
	for _, resource := range resources {
		about := attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				spans = append(spans, read(span, about))
			}
		}
	}
	return spans
}

func read(s *otlp.Span, about map[string]any) Span {
	span := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Kind: s.GetKind(), Start: at(s.GetStartTimeUnixNano()), End: at(s.GetEndTimeUnixNano()),
		Attributes: attributes(s.GetAttributes()), Resource: about,
		Failed: s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR, Status: s.GetStatus().GetMessage(),
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, Event{e.GetName(), at(e.GetTimeUnixNano()), attributes(e.GetAttributes())})
	}
	for _, l := range s.GetLinks() {
		span.Links = append(span.Links, Link{
			hex.EncodeToString(l.GetTraceId()), hex.EncodeToString(l.GetSpanId()), attributes(l.GetAttributes()),
		})
	}
	return span
}

func at(nanoseconds uint64) time.Time { return time.Unix(0, int64(nanoseconds)).UTC() }

func attributes(sent []*common.KeyValue) map[string]any {
	all := make(map[string]any, len(sent))
	for _, attribute := range sent {
		switch value := attribute.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[attribute.GetKey()] = value.StringValue
		case *common.AnyValue_IntValue:
			all[attribute.GetKey()] = value.IntValue
		case *common.AnyValue_BoolValue:
			all[attribute.GetKey()] = value.BoolValue
		case *common.AnyValue_DoubleValue:
			all[attribute.GetKey()] = value.DoubleValue
		default:
			all[attribute.GetKey()] = fmt.Sprint(value)
		}
	}
	return all
}
