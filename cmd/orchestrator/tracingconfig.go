package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/tracing"
)

// sendSpansWithin is how long the last spans may take to be sent when the program
// stops.
const sendSpansWithin = 2 * time.Second

type tracingConfig struct {
	Endpoint    string  `koanf:"endpoint"`
	Protocol    string  `koanf:"protocol"`
	Headers     secret  `koanf:"headers"`
	SampleRatio float64 `koanf:"sample_ratio"`
	TraceURL    string  `koanf:"trace_url_template"`
	Plugins     bool    `koanf:"plugins"`
}

// finish resolves references to variables and checks. Its errors begin with the
// key.
func (t *tracingConfig) finish(environ []string) error {
	variables := variablesOf(environ)
	if err := t.Headers.expand(variables); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if !(t.SampleRatio >= 0 && t.SampleRatio <= 1) {
		return fmt.Errorf("sample_ratio: %v is not from 0 to 1", t.SampleRatio)
	}
	if at, err := url.Parse(strings.ReplaceAll(t.TraceURL, "{trace_id}", "0")); t.TraceURL != "" &&
		(err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || !strings.Contains(t.TraceURL, "{trace_id}")) {
		return fmt.Errorf("trace_url_template: %q is not an address such as http://localhost:16686/trace/{trace_id}", t.TraceURL)
	}
	_, err := t.target(environ)
	return err
}

// target is the collector that is configured, or that the environment names.
func (t *tracingConfig) target(environ []string) (tracing.Target, error) {
	variables := variablesOf(environ)
	return tracing.NewTarget(t.Endpoint, t.Protocol, t.Headers.reveal(), func(name string) string { return variables[name] })
}

// start begins to trace; the result is nil when there is no collector.
func (t *tracingConfig) start(
	ctx context.Context, environ []string, worker string, meter metric.Meter, log *slog.Logger,
) (*tracing.Tracing, error) {
	target, err := t.target(environ)
	if err != nil {
		return nil, fmt.Errorf("tracing.%w", err)
	}
	return tracing.Start(ctx, tracing.Config{
		Target: target, Ratio: t.SampleRatio, Worker: worker, Version: thisBuild().Version, Meter: meter, Log: log,
	})
}

func closeTracing(t *tracing.Tracing, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), sendSpansWithin)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.Warn("the last spans may not have been sent", "error", err)
	}
}
