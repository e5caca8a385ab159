package tracing

import (
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-jobs/holdfast/plugin/tracing/otlp"
)

// The protocols that spans can be sent with.
const (
	GRPC = "grpc"
	HTTP = "http"
)

// Target is the collector. The zero value is none.
type Target struct {
	// Endpoint is its URL; empty when OpenTelemetry's environment variables set it.
	Endpoint string
	Protocol string
	// Headers are sent with the spans, including those from the environment.
	Headers map[string]string
	// FromEnvironment says that the endpoint comes from the environment.
	FromEnvironment bool

	variables otlp.Environment // nil for that of the process
}

// environment is the one that the target was made with.
func (t Target) environment() otlp.Environment {
	if t.variables == nil {
		return os.Getenv
	}
	return t.variables
}

func (t Target) set() bool { return t.Endpoint != "" || t.FromEnvironment }

// NewTarget reads the settings, and the environment for those that are empty. Headers
// are written as name=value, separated by commas, as in OTEL_EXPORTER_OTLP_HEADERS. It
// returns an error for a setting that could not be used exactly as written. Errors begin
// with the setting and name the variable; they contain no secret.
func NewTarget(endpoint, protocol, headers string, variables otlp.Environment) (Target, error) {
	t := Target{Endpoint: endpoint, Protocol: protocol, variables: variables}
	t.FromEnvironment = endpoint == "" && t.environment().NamesCollector()
	if protocol != "" && protocol != GRPC && protocol != HTTP {
		return t, fmt.Errorf("protocol: %q is neither %s nor %s", protocol, GRPC, HTTP)
	}
	if t.Protocol == "" {
		t.Protocol = t.usualProtocol()
	}
	if t.set() && t.Protocol != GRPC && t.Protocol != HTTP {
		return t, fmt.Errorf("protocol: OTEL_EXPORTER_OTLP_PROTOCOL is %q; spans are sent by grpc or http/protobuf", t.Protocol)
	}
	if err := t.checkEndpoint(); err != nil {
		return t, fmt.Errorf("endpoint: %w", err)
	}
	var err error
	if t.Headers, err = t.headers(headers); err != nil {
		return t, fmt.Errorf("headers: %w", err)
	}
	return t, nil
}

func (t Target) checkEndpoint() error {
	if !t.FromEnvironment {
		if t.Endpoint == "" {
			return nil
		}
		return checkEndpoint(t.Endpoint, t.Protocol)
	}
	name, endpoint := t.environment().Setting("ENDPOINT")
	if t.Protocol == GRPC && strings.HasPrefix(endpoint, "unix:") { // which the library can reach
		return nil
	}
	if err := checkEndpoint(endpoint, t.Protocol); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// headers returns the headers from the settings or, if there are none, from the
// environment, even when the endpoint does not come from there.
func (t Target) headers(text string) (map[string]string, error) {
	headers, err := parseHeaders(text, t.Protocol)
	if err != nil {
		return nil, err
	}
	if len(headers) > 0 || !t.set() {
		return headers, checkValues(headers, t.Protocol)
	}
	name, text := t.environment().Setting("HEADERS")
	if headers, err = parseHeaders(text, t.Protocol); err == nil {
		if err = unescape(headers); err == nil {
			err = checkValues(headers, t.Protocol)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return headers, nil
}

// usualProtocol is the protocol when the settings name none: gRPC, or what the
// environment says if the endpoint comes from there.
func (t Target) usualProtocol() string {
	if !t.FromEnvironment {
		return GRPC
	}
	_, protocol := t.environment().Setting("PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return protocol
	}
	return HTTP
}

// TracesEndpoint is the URL that spans are sent to, in the form of
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; empty for none.
func (t Target) TracesEndpoint() string {
	switch {
	case !t.set():
		return ""
	case t.Endpoint != "" && t.Protocol == GRPC:
		return t.Endpoint
	case t.Endpoint != "":
		return withPath(t.Endpoint)
	}
	name, endpoint := t.environment().Setting("ENDPOINT")
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" && t.Protocol == HTTP { // which lacks the path of traces
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	return endpoint
}
