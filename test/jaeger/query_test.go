package jaeger

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// get queries Jaeger and returns the status and the body of its answer.
func get(t *testing.T, path string, parameters url.Values) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, queries+path+"?"+parameters.Encode(), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err, "does Jaeger run? HOLDFAST_JAEGER_URL is %s", queries)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, body
}

// spansAt returns the spans that Jaeger has at the path, or none if it does not know the
// trace yet.
func spansAt(t *testing.T, path string, parameters url.Values) []collector.Span {
	t.Helper()
	status, body := get(t, path, parameters)
	if status == http.StatusNotFound {
		return nil
	}
	require.Equal(t, http.StatusOK, status, "%s", body)
	spans, err := collector.ReadJSON(bytes.NewReader(body))
	require.NoError(t, err, "%s", body)
	for _, span := range spans { // they are sorted by name
		slices.SortStableFunc(span.Events, func(a, b collector.Event) int { return a.At.Compare(b.At) })
	}
	return spans
}

// arrive returns once wanted accepts the trace's spans, which takes Jaeger a while. It
// queries the raw spans: when Jaeger shows spans, it adds warnings to them, and a Jaeger
// that stores in memory would keep these.
func arrive(t *testing.T, trace string, wanted func([]collector.Span) bool) {
	t.Helper()
	until(t, func() []collector.Span {
		return spansAt(t, "/api/v3/traces/"+trace, url.Values{"raw_traces": {"true"}})
	}, wanted)
}

// told returns the spans of the trace as Jaeger shows them, once wanted accepts them.
func told(t *testing.T, trace string, wanted func([]collector.Span) bool) []collector.Span {
	t.Helper()
	arrive(t, trace, wanted)
	return spansAt(t, "/api/v3/traces/"+trace, nil)
}

// sound checks the spans, and that Jaeger has added no warnings, which are attributes.
func sound(t *testing.T, spans []collector.Span) {
	t.Helper()
	collector.Sound(t, spans)
	for _, span := range spans {
		require.NotContains(t, span.Attributes, "@jaeger@warnings", span.Name)
	}
}

// found returns the spans of all traces of the service in the last hour that have the
// operation, as Jaeger shows them, once wanted accepts them.
func found(t *testing.T, service, operation string, wanted func([]collector.Span) bool) []collector.Span {
	t.Helper()
	parameters := url.Values{
		"query.service_name": {service}, "query.operation_name": {operation}, "query.num_traces": {"1000"},
		"query.start_time_min": {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)},
		"query.start_time_max": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)},
		"query.raw_traces":     {"true"},
	}
	until(t, func() []collector.Span { return spansAt(t, "/api/v3/traces", parameters) }, wanted)
	parameters.Del("query.raw_traces")
	return spansAt(t, "/api/v3/traces", parameters)
}

func until(t *testing.T, look func() []collector.Span, wanted func([]collector.Span) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		spans := look()
		if wanted(spans) {
			return
		}
		select {
		case <-ctx.Done():
			require.Failf(t, "the expected spans did not arrive", "there are:\n%s", collector.Tree(spans, ""))
		case <-time.After(glance):
		}
	}
}

// complete accepts spans among which each name occurs so many times.
func complete(count int, names ...string) func([]collector.Span) bool {
	return func(spans []collector.Span) bool {
		whole := true
		for _, name := range names {
			whole = whole && len(collector.Named(spans, name)) == count
		}
		return whole
	}
}

// An operation is the name and the kind of spans.
type operation struct {
	Name string `json:"name"`
	Kind string `json:"spanKind"`
}

func services(t *testing.T) []string {
	t.Helper()
	var answer struct{ Services []string }
	read(t, "/api/v3/services", nil, &answer)
	return answer.Services
}

func operations(t *testing.T, service string) []operation {
	t.Helper()
	var answer struct{ Operations []operation }
	read(t, "/api/v3/operations", url.Values{"service": {service}}, &answer)
	return answer.Operations
}

func read(t *testing.T, path string, parameters url.Values, answer any) {
	t.Helper()
	status, body := get(t, path, parameters)
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.NoError(t, json.Unmarshal(body, answer), "%s", body)
}
