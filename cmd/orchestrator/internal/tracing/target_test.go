package tracing

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
)

func TestWhereSpansGo(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint, protocol, headers string
		environment                 map[string]string
		want                        Target
		err                         string
	}{
		"nowhere": {want: Target{Protocol: GRPC, Headers: map[string]string{}}},
		"to the endpoint": {
			endpoint: "http://c:4317", headers: "a=b, c = d=e,",
			want: Target{Endpoint: "http://c:4317", Protocol: GRPC, Headers: map[string]string{"a": "b", "c": "d=e"}},
		},
		"by the environment": {
			environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
			want:        Target{FromEnvironment: true, Protocol: HTTP, Headers: map[string]string{}},
		},
		"by the environment, over gRPC": {
			environment: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			want:        Target{FromEnvironment: true, Protocol: GRPC, Headers: map[string]string{}},
		},
		"the settings win": {
			endpoint: "https://c", protocol: "http",
			environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			want:        Target{Endpoint: "https://c", Protocol: HTTP, Headers: map[string]string{}},
		},
		"the environment says no": {
			environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
			want:        Target{Protocol: GRPC, Headers: map[string]string{}},
		},
		"no URL":      {endpoint: "localhost:4317", err: `endpoint: "localhost:4317" is not a URL such as http://localhost:4317`},
		"a password":  {endpoint: "grpc://u:s3cret@c:4317", err: `endpoint: "xxxxx@c:4317" is not a URL such as http://localhost:4317`},
		"no protocol": {protocol: "udp", err: `protocol: "udp" is neither grpc nor http`},
		"no header":   {headers: "secret", err: "headers: write name=value, separated by commas"},
		"a socket": {
			environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "unix:///run/otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			want:        Target{FromEnvironment: true, Protocol: GRPC, Headers: map[string]string{}},
		},
		"headers of the environment": {
			endpoint: "http://c:4317", environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20x"},
			want: Target{Endpoint: "http://c:4317", Protocol: GRPC, Headers: map[string]string{"Authorization": "Bearer x"}},
		},
		"headers of the settings win": {
			endpoint: "http://c:4317", headers: "a=b%", environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "none"},
			want: Target{Endpoint: "http://c:4317", Protocol: GRPC, Headers: map[string]string{"a": "b%"}},
		},
		"JSON is not sent": {
			environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			err:         `protocol: OTEL_EXPORTER_OTLP_PROTOCOL is "http/json"; spans are sent by grpc or http/protobuf`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewTarget(c.endpoint, c.protocol, c.headers, func(name string) string { return c.environment[name] })
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			got.variables = nil // which cannot be compared
			require.Equal(t, c.want, got)
		})
	}
}

func TestSettingsThatCouldNotBeUsedAsWrittenAreRefused(t *testing.T) {
	const (
		protocol = "OTEL_EXPORTER_OTLP_PROTOCOL"
		all      = "OTEL_EXPORTER_OTLP_ENDPOINT"
		own      = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	)
	for name, c := range map[string]struct {
		endpoint, protocol, headers string
		environment                 map[string]string
		err                         string
	}{
		"a password": {endpoint: "http://u:s3cret@c:4317", err: "endpoint: a user and a password are not sent; send the header authorization"},
		"a password with a question mark": {
			endpoint: "http://u:s3cret?x@c:4318", protocol: HTTP, err: `endpoint: "xxxxx" is not a URL such as http://localhost:4318`,
		},
		"one with a question mark at its end": {
			endpoint: "http://u:12?s3cret@c:4318", protocol: HTTP, err: "endpoint: a user and a password are not sent",
		},
		"a query with an at sign":   {endpoint: "c?x=s3cret@s3cret", protocol: HTTP, err: `endpoint: "xxxxx" is not a URL`},
		"a query of what is no URL": {endpoint: "c:1?x=s3cret", protocol: HTTP, err: `endpoint: "c:1" is not a URL`},
		"a query":                   {endpoint: "http://c:4318/v1/traces?token=s3cret", protocol: HTTP, err: "endpoint: a query is not sent; send a header instead"},
		"a fragment":                {endpoint: "http://c:4318/#s3cret", protocol: HTTP, err: "endpoint: a fragment, which begins with #, is not sent"},
		"a path":                    {endpoint: "http://c:4317/v1/traces", err: "endpoint: gRPC has no path; write http://c:4317, or use the protocol http"},
		"no port":                   {endpoint: "http://c", err: "endpoint: a port is missing; write http://c:4317"},
		"a wrong port":              {endpoint: "http://c:99999", err: "endpoint: the port 99999 is not from 1 to 65535"},
		"no host":                   {endpoint: "http://:4317", err: `endpoint: "http://:4317" is not a URL such as http://localhost:4317`},
		"an address in the environment": {
			environment: map[string]string{own: "127.0.0.1:18417", protocol: "grpc"},
			err:         `endpoint: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "127.0.0.1:18417" is not a URL such as http://localhost:4317`,
		},
		"a name in the environment": {
			environment: map[string]string{all: "localhost:18418"},
			err:         `endpoint: OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:18418" is not a URL such as http://localhost:4318`,
		},
		"a password in the environment": {
			environment: map[string]string{all: "http://u:s3cret@c:4 318"},
			err:         `endpoint: OTEL_EXPORTER_OTLP_ENDPOINT: "xxxxx@c:4 318" is not a URL such as http://localhost:4318`,
		},
		"a header of the environment with a colon": {
			endpoint: "http://c:4317", environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "Authorization: Bearer s3cret"},
			err: "headers: OTEL_EXPORTER_OTLP_HEADERS: write name=value, separated by commas",
		},
		"one of which the end looks like a value": {
			endpoint: "http://c:4317", environment: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=b,Authorization: Basic s3cret=="},
			err: "headers: OTEL_EXPORTER_OTLP_TRACES_HEADERS: the name of header 2 has a character that is not allowed in a name",
		},
		"a stray escape": {
			endpoint: "http://c:4317", environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic s3cret%"},
			err: "headers: OTEL_EXPORTER_OTLP_HEADERS: the value of authorization has a % that begins no escape such as %20; write %25 for it",
		},
		"a header twice": {
			endpoint: "http://c:4317", headers: "Authorization=s3cret,authorization=b",
			err: "headers: the header authorization is duplicated; names that differ only in case are the same",
		},
		"one of the environment twice": {
			endpoint: "http://c:4317", environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=s3cret,a=b"},
			err: "headers: OTEL_EXPORTER_OTLP_HEADERS: the header a is duplicated",
		},
		"a host":            {endpoint: "http://c:4318", protocol: HTTP, headers: "Host=s3cret", err: "headers: the header host is set by the protocol; leave it out"},
		"a type":            {endpoint: "http://c:4318", protocol: HTTP, headers: "content-type=s3cret", err: "headers: the header content-type is set by"},
		"a type in gRPC":    {endpoint: "http://c:4317", headers: "content-type=s3cret", err: "headers: the header content-type is set by"},
		"a name for gRPC":   {endpoint: "http://c:4317", headers: "user-agent=s3cret", err: "headers: the header user-agent is set by"},
		"a blank in a name": {endpoint: "http://c:4317", headers: "x tok=s3cret", err: "headers: the name of header 1 has a character"},
		"a line's end in a value": {
			endpoint: "http://c:4318", protocol: HTTP, headers: "x-token=s3cret\nx: y",
			err: "headers: the value of x-token has a character that is not allowed in a value",
		},
		"one of the environment": {
			endpoint: "http://c:4318", protocol: HTTP, environment: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-token=s3cret%0ax"},
			err: "headers: OTEL_EXPORTER_OTLP_HEADERS: the value of x-token has a character that is not allowed in a value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewTarget(c.endpoint, c.protocol, c.headers, func(name string) string { return c.environment[name] })
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestAPasswordOfDigitsIsNotShownAsAPort(t *testing.T) {
	for _, protocol := range []string{GRPC, HTTP} {
		for _, password := range []string{"12345678/x", "1234/x", "1234?x", "1234#x"} {
			_, err := NewTarget("http://u:"+password+"@c:4318", protocol, "", func(string) string { return "" })
			require.ErrorContains(t, err, "endpoint: a user and a password are not sent", password)
			require.NotContains(t, err.Error(), "1234")
		}
	}
	_, err := NewTarget("http://c:4318/%40tenant/v1/traces", HTTP, "", func(string) string { return "" })
	require.NoError(t, err)
}

func TestAttributesThatCannotBeReadAreSkipped(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=shop,nonsense")
	var log bytes.Buffer
	traces, err := Start(t.Context(), Config{
		Target: Target{Endpoint: "http://127.0.0.1:1", Protocol: HTTP}, Meter: noop.Meter{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, end(t, traces, time.Second))
	require.Contains(t, log.String(), "OTEL_RESOURCE_ATTRIBUTES")
}
