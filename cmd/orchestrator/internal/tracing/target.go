package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The protocols that spans are sent by.
const (
	GRPC = "grpc"
	HTTP = "http"
)

// Target is the collector. The zero value is none.
type Target struct {
	// Endpoint is its URL; empty when the environment has it, by
	// OpenTelemetry's own variables.
	Endpoint string
	Protocol string
	Headers  map[string]string
	// FromEnvironment says that the environment has the endpoint.
	FromEnvironment bool
}

func (t Target) set() bool { return t.Endpoint != "" || t.FromEnvironment }

// NewTarget reads the settings, and where they say nothing the environment.
// Headers are name=value, parted by commas, as OTEL_EXPORTER_OTLP_HEADERS has them.
func NewTarget(endpoint, protocol, headers string, getenv func(string) string) (Target, error) {
	t := Target{Endpoint: endpoint, Protocol: protocol}
	if protocol != "" && protocol != GRPC && protocol != HTTP {
		return t, fmt.Errorf("protocol: %q is neither %s nor %s", protocol, GRPC, HTTP)
	}
	if endpoint != "" {
		parsed, err := url.Parse(endpoint)
		if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return t, fmt.Errorf("endpoint: %q is no URL such as http://localhost:4317", withoutPassword(endpoint))
		}
	} else {
		t.FromEnvironment = inEnvironment(getenv)
	}
	if t.Protocol == "" {
		t.Protocol = t.usualProtocol(getenv)
	}
	if t.set() && t.Protocol != GRPC && t.Protocol != HTTP {
		return t, fmt.Errorf("protocol: OTEL_EXPORTER_OTLP_PROTOCOL is %q; spans are sent by grpc or http/protobuf", t.Protocol)
	}
	var err error
	t.Headers, err = parseHeaders(headers)
	return t, err
}

// withoutPassword is an endpoint as it may be shown, be it a URL or not.
func withoutPassword(endpoint string) string {
	if at := strings.LastIndex(endpoint, "@"); at >= 0 {
		return "xxxxx" + endpoint[at:]
	}
	return endpoint
}

// inEnvironment reports whether OpenTelemetry's variables name a collector.
func inEnvironment(getenv func(string) string) bool {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// usualProtocol is that of OpenTelemetry's variables where the endpoint comes from
// them.
func (t Target) usualProtocol(getenv func(string) string) string {
	if !t.FromEnvironment {
		return GRPC
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if set := getenv(name); set != "" && set != "http/protobuf" {
			return set
		} else if set != "" {
			return HTTP
		}
	}
	return HTTP
}

func parseHeaders(text string) (map[string]string, error) {
	headers := make(map[string]string)
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		if !found || strings.TrimSpace(name) == "" {
			// The value is not shown: it may be a secret.
			return nil, errors.New("headers: write name=value, parted by commas")
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}

// exporter does not wait for the collector. Where the environment has the
// endpoint, the library reads all of its variables by itself; others, such as
// for certificates and timeouts, count in any case.
func (t Target) exporter(ctx context.Context) (sdk.SpanExporter, error) {
	if t.Protocol == GRPC {
		options := []otlptracegrpc.Option{}
		if t.Endpoint != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(t.Endpoint))
		}
		if len(t.Headers) > 0 {
			options = append(options, otlptracegrpc.WithHeaders(t.Headers))
		}
		return otlptrace.New(ctx, otlptracegrpc.NewClient(options...))
	}
	options := []otlptracehttp.Option{}
	if t.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(withPath(t.Endpoint)))
	}
	if len(t.Headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(t.Headers))
	}
	return otlptrace.New(ctx, otlptracehttp.NewClient(options...))
}

// TracesEndpoint is the URL that spans are sent to, as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
// has it; empty for none.
func (t Target) TracesEndpoint(getenv func(string) string) string {
	switch {
	case !t.set():
		return ""
	case t.Endpoint != "" && t.Protocol == GRPC:
		return t.Endpoint
	case t.Endpoint != "":
		return withPath(t.Endpoint)
	}
	if traces := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); traces != "" {
		return traces
	}
	endpoint := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if t.Protocol == HTTP { // the variable for all signals lacks the path of this one
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	return endpoint
}

// withPath adds the usual path to an endpoint that has none.
func withPath(endpoint string) string {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Path != "" && parsed.Path != "/" {
		return endpoint
	}
	parsed.Path = "/v1/traces"
	return parsed.String()
}
