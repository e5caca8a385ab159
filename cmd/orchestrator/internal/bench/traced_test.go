package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestABacklogHasTheTraceContextsThatTheApiWouldGive(t *testing.T) {
	for _, c := range []struct {
		settings      []string
		with, sampled int
	}{
		{nil, 0, 0},
		{[]string{"tracing.sample_ratio=1"}, 0, 0},
		{[]string{"tracing.endpoint=http://127.0.0.1:4317"}, 1000, 1000},
		{[]string{"tracing.endpoint=http://127.0.0.1:4317", "tracing.sample_ratio=0.01"}, 1000, 10},
		{[]string{"tracing.endpoint=http://127.0.0.1:4317", "tracing.sample_ratio=0"}, 1000, 0},
	} {
		with, sampled := 0, 0
		for number := range 1000 {
			carried := samplingBy(c.settings).of(number)
			if carried.Parent != "" {
				with++
				require.Len(t, carried.Parent, 55)
			}
			if strings.HasSuffix(carried.Parent, "-01") {
				sampled++
			}
		}
		require.Equal(t, c.with, with, c.settings)
		require.Equal(t, c.sampled, sampled, c.settings)
	}
}
