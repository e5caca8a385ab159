package tracing

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACertificateOfTheEnvironmentIsTrusted(t *testing.T) {
	server := httptest.NewTLSServer(&answering{})
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for certificate, want := range map[string]int64{"": 0, file: 1} {
		t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
		traces, counted := begin(t, Target{Endpoint: server.URL, Protocol: HTTP}, 1)
		_, span := traces.Tracer().Start(t.Context(), "one")
		span.End()
		require.NoError(t, end(t, traces, 5*time.Second))
		require.Equal(t, want, counted()["holdfast.spans.sent "])
	}
}

func TestVariablesThatCannotBeUsedAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ value, err string }{
		"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": {"/nowhere.pem", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: open /nowhere.pem"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {os.DevNull, "OTEL_EXPORTER_OTLP_CERTIFICATE: /dev/null has no certificate in PEM"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"5s", `OTEL_EXPORTER_OTLP_TIMEOUT: "5s" is no number of milliseconds`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, c.value)
			_, err := Target{Endpoint: "https://collector", Protocol: HTTP}.exporter(t.Context())
			require.ErrorContains(t, err, c.err)
		})
	}
}
