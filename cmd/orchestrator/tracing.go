package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/tracing"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// sendSpansWithin bounds the sending of the last spans when the program stops.
const sendSpansWithin = 2 * time.Second

// startTracing returns nil when there is no collector.
func startTracing(
	ctx context.Context, cfg config.Tracing, environ []string, worker string, cell job.Cell, meter metric.Meter, log *slog.Logger,
) (*tracing.Tracing, error) {
	target, err := cfg.Target(environ)
	if err != nil {
		return nil, fmt.Errorf("tracing.%w", err)
	}
	return tracing.Start(ctx, tracing.Config{
		Target: target, Ratio: cfg.SampleRatio, Worker: worker, Version: thisBuild().Version, Cell: cell, Meter: meter, Log: log,
	})
}

func closeTracing(t *tracing.Tracing, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), sendSpansWithin)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last spans may not have been sent", "error", err)
	}
}
