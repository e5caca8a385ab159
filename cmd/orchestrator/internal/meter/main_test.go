package meter

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func newMeters(t testing.TB) *Meters {
	t.Helper()
	m, err := New(Identity{Worker: "worker-1", Version: "v9"}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return m
}

// text is what Prometheus gets.
func text(t testing.TB, m *Meters, headers ...string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

// families are the metrics that Prometheus gets, by name.
func families(t testing.TB, m *Meters) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(text(t, m)))
	require.NoError(t, err)
	return found
}

// value returns that of the sample with exactly these labels, each name=value.
func value(t testing.TB, found map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	slices.Sort(labels)
	require.Contains(t, found, name)
	for _, sample := range found[name].GetMetric() {
		var has []string
		for _, label := range sample.GetLabel() {
			has = append(has, label.GetName()+"="+label.GetValue())
		}
		slices.Sort(has)
		if slices.Equal(has, labels) {
			return sample.GetGauge().GetValue() + sample.GetCounter().GetValue() +
				float64(sample.GetHistogram().GetSampleCount())
		}
	}
	require.Fail(t, "no sample", "%s%v", name, labels)
	return 0
}
