package collector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Two documents, as a streaming server answers; the second is in Jaeger's form.
const documents = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0a","spanId":"02","parentSpanId":"01","name":"below","kind":5,
 "startTimeUnixNano":"2000","endTimeUnixNano":"3000","status":{"code":2,"message":"it fails"},
 "events":[{"name":"exception","timeUnixNano":"2500","attributes":[{"key":"exception.type","value":{"stringValue":"x"}}]}],
 "links":[{"traceId":"0b","spanId":"03","attributes":[{"key":"job.link","value":{"stringValue":"request"}}]}]}]}]}]}
{"result":{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"holdfast"}}]},
 "scopeSpans":[{"spans":[{"traceId":"0a","spanId":"01","name":"above","kind":2,"startTimeUnixNano":"1000","endTimeUnixNano":"4000",
 "attributes":[{"key":"number","value":{"intValue":"7"}},{"key":"share","value":{"doubleValue":0.5}},{"key":"yes","value":{"boolValue":true}}],
 "status":{}}]}]}]}}`

func TestSpansAreReadFromJSON(t *testing.T) {
	spans, err := ReadJSON(strings.NewReader(documents))
	require.NoError(t, err)
	require.Equal(t, []Span{
		{
			Trace: "0a", ID: "01", Name: "above", Kind: otlp.Span_SPAN_KIND_SERVER,
			Start: time.Unix(0, 1000).UTC(), End: time.Unix(0, 4000).UTC(),
			Attributes: map[string]any{"number": int64(7), "share": 0.5, "yes": true},
			Resource:   map[string]any{"service.name": "holdfast"},
		},
		{
			Trace: "0a", ID: "02", Parent: "01", Name: "below", Kind: otlp.Span_SPAN_KIND_CONSUMER,
			Start: time.Unix(0, 2000).UTC(), End: time.Unix(0, 3000).UTC(),
			Attributes: map[string]any{}, Resource: map[string]any{}, Failed: true, Status: "it fails",
			Events: []Event{{"exception", time.Unix(0, 2500).UTC(), map[string]any{"exception.type": "x"}}},
			Links:  []Link{{"0b", "03", map[string]any{"job.link": "request"}}},
		},
	}, spans)
}

func TestInvalidJSONIsAnError(t *testing.T) {
	_, err := ReadJSON(strings.NewReader(`{"resourceSpans":[]}` + "\nno trace"))
	require.ErrorContains(t, err, "spans in JSON: invalid character")
}
