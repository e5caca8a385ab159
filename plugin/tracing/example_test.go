package tracing_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

// Without a collector in the environment, spans cost nothing and go nowhere.
func ExampleSetup() {
	fetch := func(ctx context.Context, _ plugin.Job[any]) error {
		_, span := otel.Tracer("index").Start(ctx, "fetch")
		defer span.End()
		fmt.Println("recording:", span.IsRecording())
		return nil
	}
	_ = func() { plugin.Serve(tracing.Setup(), plugin.Handle("INDEX", fetch)) }

	fmt.Println(fetch(context.Background(), plugin.Job[any]{}))
	// Output:
	// recording: false
	// <nil>
}
