// Package tracing sends the spans of handlers to a collector, by OTLP, so that they
// appear below the attempt that they belong to:
//
//	func main() { plugin.Serve(tracing.Setup(), plugin.Handle("ECHO", Echo)) }
//
//	func Echo(ctx context.Context, j plugin.Job[Args]) error {
//		ctx, span := otel.Tracer("echo").Start(ctx, "look it up")
//		defer span.End()
//		...
//	}
//
// It does so where OpenTelemetry's own variables name a collector, which the
// orchestrator hands on with tracing.plugins, or by the handler's env. Where they
// do not, nothing is made and nothing costs anything. A collector that is slow or
// gone costs spans and nothing else: 2048 of them wait for it, the others are
// dropped.
package tracing
