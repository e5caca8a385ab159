package main

import "github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/tracing"

// handedOn are the variables of OpenTelemetry that handlers are given as they are.
// Headers are not among them: they hold secrets.
var handedOn = []string{
	"OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
	"OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
	"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	"OTEL_RESOURCE_ATTRIBUTES",
}

// forHandler is what the handler is given so that it sends its spans where the
// orchestrator sends its own; nothing unless that is wanted and there is a
// collector. An endpoint has nothing secret in it: NewTarget refuses passwords and
// queries.
func (t *tracingConfig) forHandler(name string, environ []string) map[string]string {
	if !t.Plugins {
		return nil
	}
	ours := variablesOf(environ)
	target, err := t.target(environ)
	if err != nil { // which is told when the tracing of the orchestrator starts
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

// protocolNames are OpenTelemetry's own.
var protocolNames = map[string]string{tracing.GRPC: "grpc", tracing.HTTP: "http/protobuf"}
