package meter

import (
	"log/slog"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// The library logs variables that it cannot read, in a process that lets it.
func TestWhatTheLibraryCannotReadIsNotOnStandardError(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_CHILD") != "" {
		_, err := New(Identity{}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		otlptracehttp.NewClient()
		return
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS":  "Authorization: Bearer s3cret",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:s3cret@collector:4 318",
	} {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), "HOLDFAST_TEST_CHILD=1", name+"="+value)
		out, err := child.CombinedOutput()
		require.NoError(t, err)
		require.NotContains(t, string(out), "s3cret")
	}
}
