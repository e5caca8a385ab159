package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/tracing"
)

// Tracing says where spans go and where people see them.
type Tracing struct {
	Endpoint    string  `koanf:"endpoint" show:"no"`
	Protocol    string  `koanf:"protocol"`
	Headers     Secret  `koanf:"headers"`
	SampleRatio float64 `koanf:"sample_ratio"`
	TraceURL    string  `koanf:"trace_url_template" show:"no"`
	Plugins     bool    `koanf:"plugins"`
}

// finish resolves references and checks. Its errors begin with the key.
func (t *Tracing) finish(environ []string) error {
	variables := Variables(environ)
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
	_, err := t.Target(environ)
	return err
}

// Target is the collector that you configured or that the environment names.
func (t *Tracing) Target(environ []string) (tracing.Target, error) {
	variables := Variables(environ)
	return tracing.NewTarget(t.Endpoint, t.Protocol, t.Headers.Reveal(), func(name string) string { return variables[name] })
}

// handedOn are the OpenTelemetry variables that plugins inherit. Headers are not
// among them: they hold secrets.
var handedOn = []string{
	"OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
	"OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
	"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	"OTEL_RESOURCE_ATTRIBUTES",
}

// PluginVariables are the variables that make a plugin send its spans to the
// orchestrator's collector; nil unless tracing.plugins is set and there is a
// collector. The endpoint holds no secret: NewTarget rejects passwords and queries.
func (t *Tracing) PluginVariables(name string, environ []string) map[string]string {
	if !t.Plugins {
		return nil
	}
	ours := Variables(environ)
	target, err := t.Target(environ)
	if err != nil { // reported when the orchestrator starts its own tracing
		return nil
	}
	endpoint := target.TracesEndpoint()
	if endpoint == "" {
		return nil
	}
	given := map[string]string{
		"OTEL_SERVICE_NAME":                  name,
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint,
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": protocolNames[target.Protocol],
	}
	for _, variable := range handedOn {
		if value := ours[variable]; value != "" {
			given[variable] = value
		}
	}
	return given
}

// protocolNames are those of OpenTelemetry's variables.
var protocolNames = map[string]string{tracing.GRPC: "grpc", tracing.HTTP: "http/protobuf"}
