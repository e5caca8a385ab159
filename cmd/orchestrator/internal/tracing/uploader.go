package tracing

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// uploader sends batches by the library's client, which encodes, sends and tries again.
type uploader struct {
	otlptrace.Client
	// encode makes OTLP's messages of spans of the SDK.
	encode sdk.SpanExporter
	made   *made
	// frame is a message without spans. It says what all spans are about.
	frame func() []*otlp.ResourceSpans
}

// newUploader returns one for spans of tracers that are like the one that has made the span.
func newUploader(ctx context.Context, client otlptrace.Client, like sdk.ReadOnlySpan) (*uploader, error) {
	made := new(made)
	u := &uploader{Client: client, encode: otlptrace.NewUnstarted(made), made: made}
	if err := u.encode.ExportSpans(ctx, []sdk.ReadOnlySpan{like}); err != nil {
		return nil, err
	}
	resource, scope := made.spans[0], made.spans[0].GetScopeSpans()[0]
	u.frame = func() []*otlp.ResourceSpans {
		return []*otlp.ResourceSpans{{
			Resource: resource.GetResource(), SchemaUrl: resource.GetSchemaUrl(),
			ScopeSpans: []*otlp.ScopeSpans{{Scope: scope.GetScope(), SchemaUrl: scope.GetSchemaUrl()}},
		}}
	}
	return u, client.Start(ctx)
}

// upload sends a batch until the collector has taken or refused it, or the context ends.
func (u *uploader) upload(ctx context.Context, b *batch) error {
	sent := u.frame()
	if len(b.others) > 0 {
		if err := u.encode.ExportSpans(ctx, b.others); err != nil {
			return err
		}
		sent = u.made.spans
	}
	// Protobuf writes fields that it does not know as they are: so what is encoded need not
	// become messages first.
	if b.encoded > 0 {
		sent[0].GetScopeSpans()[0].ProtoReflect().SetUnknown(b.jobs)
	}
	return u.UploadTraces(ctx, sent)
}

// made is a client of the library's exporter that only keeps the messages. They cannot be had in
// another way.
type made struct{ spans []*otlp.ResourceSpans }

// Start implements otlptrace.Client.
func (*made) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (*made) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client.
func (m *made) UploadTraces(_ context.Context, spans []*otlp.ResourceSpans) error {
	m.spans = spans
	return nil
}
