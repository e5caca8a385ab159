package tracing

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// certificateOf writes the certificate of the server to a file.
func certificateOf(t *testing.T, server *httptest.Server) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return file
}

// sentTo is how many spans of one the target takes.
func sentTo(t *testing.T, target Target) int64 {
	t.Helper()
	traces, counted := begin(t, target, 1)
	_, span := traces.Tracer().Start(t.Context(), "one")
	span.End()
	require.NoError(t, end(t, traces, time.Minute))
	return counted()["holdfast.spans.sent "]
}

func TestACertificateOfTheEnvironmentIsTrusted(t *testing.T) {
	overGRPC := grpc.NewServer()
	collect.RegisterTraceServiceServer(overGRPC, &answering{})
	defer overGRPC.Stop()
	for protocol, handler := range map[string]http.Handler{HTTP: &answering{}, GRPC: overGRPC} {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = true
		server.StartTLS()
		for certificate, want := range map[string]int64{"": 0, certificateOf(t, server): 1} {
			// The process has none: what counts is the environment that is given.
			target, err := NewTarget(server.URL, protocol, "", func(name string) string {
				return map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": certificate}[name]
			})
			require.NoError(t, err)
			require.Equal(t, want, sentTo(t, target), protocol)
		}
		server.Close()
	}
}

func TestTheSchemeSaysWhetherThereIsTLS(t *testing.T) {
	secure := httptest.NewTLSServer(&answering{})
	defer secure.Close()
	for _, protocol := range []string{GRPC, HTTP} {
		at := (&answering{}).listen(t, protocol).Endpoint // which has no TLS
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", map[string]string{GRPC: "grpc", HTTP: "http/protobuf"}[protocol])
		for name, c := range map[string]struct {
			endpoint    string
			environment map[string]string
			want        int64
		}{
			"https, though insecure":        {strings.Replace(at, "http:", "https:", 1), map[string]string{"INSECURE": "true"}, 0},
			"http, though not insecure":     {at, map[string]string{"INSECURE": "false"}, 1},
			"http, though certificates":     {at, map[string]string{"CERTIFICATE": certificateOf(t, secure)}, 1},
			"http, though bad certificates": {at, map[string]string{"CERTIFICATE": "/nowhere.pem"}, 1},
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				for variable, value := range c.environment {
					t.Setenv("OTEL_EXPORTER_OTLP_"+variable, value)
				}
				target, err := NewTarget(c.endpoint, protocol, "", os.Getenv)
				require.NoError(t, err)
				require.Equal(t, c.want, sentTo(t, target), "by the configuration")
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.endpoint)
				target, err = NewTarget("", "", "", os.Getenv)
				require.NoError(t, err)
				require.Equal(t, c.want, sentTo(t, target), "by the environment")
			})
		}
	}
}

func TestVariablesThatCannotBeUsedAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ value, err string }{
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": {"/nowhere.pem", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: open /nowhere.pem"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {os.DevNull, "OTEL_EXPORTER_OTLP_CERTIFICATE: /dev/null contains no certificate in PEM"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"5s", `OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds such as 10000`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, c.value)
			for _, protocol := range []string{GRPC, HTTP} {
				_, err := Target{Endpoint: "https://collector", Protocol: protocol}.client()
				require.ErrorContains(t, err, c.err, protocol)
			}
		})
	}
}
