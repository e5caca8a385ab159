package tracing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestARequestTakesAsLongAsTheEnvironmentSays(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem") // which does not count without TLS
	for _, c := range []struct {
		variable, value string
		want            time.Duration
	}{
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "", 10 * time.Second},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "2000", 2 * time.Second},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "300", 300 * time.Millisecond},
	} {
		t.Setenv(c.variable, c.value)
		client, err := overHTTP("http")
		require.NoError(t, err)
		require.Equal(t, c.want, client.Timeout)
	}
}
