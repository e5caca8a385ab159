// Package meter serves the orchestrator's metrics to Prometheus: what the runtime measures,
// and what it reads from the plugins, the connection pools and the database at each
// scrape.
//
// docs/reference/telemetry.md lists every metric.
package meter

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Identity says who is measured.
type Identity struct {
	// Worker is the incarnation's id.
	Worker  string
	Version string
	// Cell is the cell of the database, if any: then every metric has the label cell.
	Cell job.Cell
}

// Meters are the metrics of one process. They have no goroutine, and nothing to close.
type Meters struct {
	meter    metric.Meter
	requests *requests
	registry *prometheus.Registry
	log      *slog.Logger
}

// New makes meters of the Go runtime, the process and HTTP requests. Watch adds the
// rest.
func New(who Identity, log *slog.Logger) (*Meters, error) {
	registry := prometheus.NewRegistry()
	labeled := prometheus.Registerer(registry)
	if _, some := who.Cell.Number(); some {
		labeled = prometheus.WrapRegistererWith(prometheus.Labels{"cell": who.Cell.String()}, registry)
	}
	labeled.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	reader, err := exporter.New(exporter.WithRegisterer(labeled), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "holdfast"),
		attribute.String("service.instance.id", who.Worker),
		attribute.String("service.version", who.Version),
	)
	// Otherwise the library's errors go to standard error, in its own format, and its log
	// quotes variables that hold secrets.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("telemetry went wrong", slog.Any("error", err))
	}))
	provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(about))
	m := &Meters{meter: provider.Meter("holdfast"), registry: registry, log: log}
	if m.requests, err = newRequests(m.meter); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return m, nil
}

// Meter is what instruments are declared on.
func (m *Meters) Meter() metric.Meter { return m.meter }

// Handler answers Prometheus. While the database does not answer, it serves all other
// metrics.
func (m *Meters) Handler() http.Handler {
	page := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorHandling:     promhttp.ContinueOnError,
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		page.ServeHTTP(answer, r)
		if answer.err != nil { // the client left
			m.log.DebugContext(r.Context(), "metrics not sent", slog.Any("error", answer.err))
		}
	})
}

// answer discards what is written after a write has failed. The library would
// log every metric that it cannot write.
type answer struct {
	http.ResponseWriter
	err error
}

func (a *answer) Write(page []byte) (int, error) {
	if a.err == nil {
		_, a.err = a.ResponseWriter.Write(page)
	}
	return len(page), nil
}
