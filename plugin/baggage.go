package plugin

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
)

// Baggage returns the W3C baggage that the client has sent with the job of the
// attempt that ctx belongs to, to the letter. It is empty when there is none. What
// of it can be read is in ctx for OpenTelemetry too, whose propagators carry it on.
func Baggage(ctx context.Context) string {
	if a := current(ctx); a != nil {
		return a.start.GetBaggage()
	}
	return ""
}

// withBaggage leaves what cannot be read out.
func withBaggage(ctx context.Context, text string) context.Context {
	if text == "" {
		return ctx
	}
	readable, _ := baggage.Parse(text)
	return baggage.ContextWithBaggage(ctx, readable)
}
