package spans

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// recorder is an Exporter that keeps the spans.
type recorder struct {
	t       *testing.T
	sampled bool
	mu      sync.Mutex
	wire    []*otlp.Span
	spans   []tracetest.SpanStub
}

func (r *recorder) Sampled(trace.TraceID) bool { return r.sampled }

func (r *recorder) Export(span []byte) {
	read := new(otlp.Span)
	require.NoError(r.t, proto.Unmarshal(span, read))
	require.Empty(r.t, read.ProtoReflect().GetUnknown())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire = append(r.wire, read)
	r.spans = append(r.spans, stub(read))
}

// stub is a span as the SDK would tell it.
func stub(s *otlp.Span) tracetest.SpanStub {
	told := tracetest.SpanStub{
		Name: s.GetName(), SpanKind: trace.SpanKind(s.GetKind()),
		SpanContext: contextOf(s.GetTraceId(), s.GetSpanId(), s.GetFlags()&0xff),
		StartTime:   time.Unix(0, int64(s.GetStartTimeUnixNano())), EndTime: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Attributes: attributesOf(s.GetAttributes()),
	}
	if len(s.GetParentSpanId()) > 0 {
		told.Parent = contextOf(s.GetTraceId(), s.GetParentSpanId(), s.GetFlags())
	}
	for _, e := range s.GetEvents() {
		told.Events = append(told.Events, sdk.Event{
			Name: e.GetName(), Time: time.Unix(0, int64(e.GetTimeUnixNano())), Attributes: attributesOf(e.GetAttributes()),
		})
	}
	for _, l := range s.GetLinks() {
		told.Links = append(told.Links, sdk.Link{
			SpanContext: contextOf(l.GetTraceId(), l.GetSpanId(), l.GetFlags()), Attributes: attributesOf(l.GetAttributes()),
		})
	}
	if s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR {
		told.Status = sdk.Status{Code: codes.Error, Description: s.GetStatus().GetMessage()}
	}
	return told
}

func contextOf(traceID, id []byte, flags uint32) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(traceID), SpanID: trace.SpanID(id), TraceFlags: trace.TraceFlags(flags & 0xff),
		Remote: flags&uint32(otlp.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK) != 0,
	})
}

func attributesOf(pairs []*common.KeyValue) (all []attribute.KeyValue) {
	for _, pair := range pairs {
		key := attribute.Key(pair.GetKey())
		switch v := pair.GetValue().GetValue().(type) {
		case *common.AnyValue_BoolValue:
			all = append(all, key.Bool(v.BoolValue))
		case *common.AnyValue_IntValue:
			all = append(all, key.Int64(v.IntValue))
		case *common.AnyValue_DoubleValue:
			all = append(all, key.Float64(v.DoubleValue))
		case *common.AnyValue_ArrayValue:
			var texts []string
			for _, one := range v.ArrayValue.GetValues() {
				texts = append(texts, one.GetStringValue())
			}
			all = append(all, key.StringSlice(texts))
		default:
			all = append(all, key.String(pair.GetValue().GetStringValue()))
		}
	}
	return all
}

// library encodes spans as OpenTelemetry's SDK and exporter do.
type library struct {
	otlptrace.Client
	spans []*otlp.Span
}

func (*library) Start(context.Context) error { return nil }
func (*library) Stop(context.Context) error  { return nil }

func (l *library) UploadTraces(_ context.Context, sent []*otlp.ResourceSpans) error {
	for _, resource := range sent {
		for _, scope := range resource.GetScopeSpans() {
			l.spans = append(l.spans, scope.GetSpans()...)
		}
	}
	return nil
}

// given gives ids to the SDK's spans.
type given struct{ own trace.SpanContext }

func (g given) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	return g.own.TraceID(), g.own.SpanID()
}
func (g given) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return g.own.SpanID() }

// content is what a span says.
type content struct {
	own, parent, link trace.SpanContext
	kind              trace.SpanKind
	jobType           string
	began, ended      time.Time
	about             []attribute.KeyValue
	happened          string
	with              []attribute.KeyValue
	failed            string
}

// byUs encodes it as the product does.
func (c content) byUs(t *testing.T) *otlp.Span {
	t.Helper()
	r := &recorder{t: t}
	s := begin(r, c.own, c.parent, c.kind, "process ", c.jobType, c.began)
	if c.link.IsValid() {
		s.link(c.link, linkPrevious)
	}
	s.set(c.about...)
	if c.happened != "" {
		s.event(c.happened, c.ended, c.with...)
	}
	if c.failed != "" {
		s.fail(c.failed)
	}
	s.end(c.ended)
	require.Len(t, r.wire, 1)
	return r.wire[0]
}

// byTheLibrary encodes it as the SDK and its exporter do.
func (c content) byTheLibrary(t *testing.T) *otlp.Span {
	t.Helper()
	client := new(library)
	exporter, err := otlptrace.New(t.Context(), client)
	require.NoError(t, err)
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter), sdk.WithIDGenerator(given{c.own}))
	options := []trace.SpanStartOption{trace.WithSpanKind(c.kind), trace.WithTimestamp(c.began), trace.WithAttributes(c.about...)}
	if c.link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: c.link, Attributes: []attribute.KeyValue{attrLink.String(linkPrevious)}}))
	}
	_, span := provider.Tracer("").Start(trace.ContextWithSpanContext(t.Context(), c.parent), "process "+c.jobType, options...)
	if c.happened != "" {
		span.AddEvent(c.happened, trace.WithTimestamp(c.ended), trace.WithAttributes(c.with...))
	}
	if c.failed != "" {
		span.SetStatus(codes.Error, c.failed)
	}
	span.End(trace.WithTimestamp(c.ended))
	require.Len(t, client.spans, 1)
	if made := client.spans[0]; made.GetStatus().GetCode() == otlp.Status_STATUS_CODE_UNSET {
		made.Status = nil // which says the same
	}
	return client.spans[0]
}

func TestASpanIsEncodedAsTheLibraryEncodesIt(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	words := []string{"", "a", "MAIL", "Größe", string(make([]byte, 127)), string(make([]byte, 128)), string(make([]byte, 20_000))}
	word := func() string { return words[random.IntN(len(words))] }
	pairs := func() (all []attribute.KeyValue) {
		all = []attribute.KeyValue{
			attrJob.String(word()), attrResumed.Bool(random.IntN(2) == 0), attrFence.Int64(int64(random.Uint64())),
			attrParked.Float64(random.NormFloat64()), attrGates.StringSlice([]string{word(), word()}), attrAttempt.Int(random.IntN(3)),
		}
		return all[:random.IntN(len(all)+1)]
	}
	state, err := trace.ParseTraceState("vendor=value,other=1")
	require.NoError(t, err)
	place := func(config trace.SpanContextConfig) trace.SpanContext {
		config.TraceID, config.SpanID, config.TraceFlags = newTraceID(), newSpanID(), trace.TraceFlags(1|random.IntN(256))
		return trace.NewSpanContext(config)
	}
	for range 300 {
		parent := place(trace.SpanContextConfig{Remote: random.IntN(2) == 0})
		if random.IntN(2) == 0 {
			parent = parent.WithTraceState(state)
		}
		c := content{
			parent: parent, own: parent.WithSpanID(newSpanID()), jobType: word(),
			kind:  []trace.SpanKind{trace.SpanKindInternal, trace.SpanKindProducer, trace.SpanKindConsumer}[random.IntN(3)],
			began: time.Unix(0, random.Int64()), ended: time.Unix(0, random.Int64()), about: pairs(), with: pairs(),
		}
		if random.IntN(4) == 0 { // the first of its trace
			c.parent = trace.SpanContext{}
			c.own = c.own.WithTraceFlags(trace.FlagsSampled).WithTraceState(trace.TraceState{})
		}
		if random.IntN(2) == 0 {
			c.link = place(trace.SpanContextConfig{Remote: random.IntN(2) == 0})
		}
		if random.IntN(2) == 0 {
			c.happened, c.failed = "exception", "because "+word()
		}
		want, got := c.byTheLibrary(t), c.byUs(t)
		require.True(t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
	}
}

func TestTextThatIsNotUTF8DoesNotSpoilASpan(t *testing.T) {
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: newTraceID(), SpanID: newSpanID()})
	got := content{own: own, jobType: "MA\xffIL", about: []attribute.KeyValue{attrTenant.String("\xfe")}, failed: "no\xff"}.byUs(t)
	require.Equal(t, "process MA\uFFFDIL", got.GetName())
	require.Equal(t, "\uFFFD", got.GetAttributes()[0].GetValue().GetStringValue())
	require.Equal(t, "no\uFFFD", got.GetStatus().GetMessage())
}

func TestSpansAreWrittenSideBySide(t *testing.T) {
	r := &recorder{t: t}
	tracer := New(r)
	batch := make([]struct{ jobType string }, 50)
	var all sync.WaitGroup
	for i := range batch {
		all.Go(func() {
			at := time.Now()
			c := claimed(at)
			c.Type = string(rune('a' + i%26))
			a := tracer.Claimed(&c, "w", at, at)
			a.Began(at)
			a.Ended(at)
			a.Settled(settled("success", "succeeded"), at)
		})
	}
	all.Wait()
	require.Len(t, r.spans, 3*len(batch))
	for _, span := range r.spans {
		jobType := span.Name[len(span.Name)-1:]
		require.True(t, slices.Contains(span.Attributes, attrType.String(jobType)), span.Name)
	}
}
