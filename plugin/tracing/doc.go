// Package tracing sends the spans of handlers to a collector by OTLP. They appear below
// the span of their attempt:
//
//	func main() { plugin.Serve(tracing.Setup(), plugin.Handle("ECHO", Echo)) }
//
//	func Echo(ctx context.Context, j plugin.Job[Args]) error {
//		ctx, span := otel.Tracer("echo").Start(ctx, "look it up")
//		defer span.End()
//		...
//	}
//
// OpenTelemetry's variables name the collector. Set tracing.plugins in the
// orchestrator's configuration, which passes its collector on, or set them in the
// plugin's env. Without them, spans cost nothing. A collector that is slow or gone never
// holds up a handler: 2048 spans wait for it, and the others are dropped.
package tracing
