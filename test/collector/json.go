package collector

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// ReadJSON reads spans in OTLP's JSON: one document after another, each with its
// resourceSpans at the top or, as in Jaeger's answers, in a result.
func ReadJSON(from io.Reader) ([]Span, error) {
	var spans []Span
	decoder := json.NewDecoder(from)
	decoder.UseNumber()
	for {
		var document map[string]any
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return sorted(spans), nil
		case err != nil:
			return nil, fmt.Errorf("spans in JSON: %w", err)
		}
		if result, ok := document["result"].(map[string]any); ok {
			document = result
		}
		text, err := json.Marshal(idsInBase64(document))
		if err != nil {
			return nil, fmt.Errorf("spans in JSON: %w", err)
		}
		var traces otlp.TracesData
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &traces); err != nil {
			return nil, fmt.Errorf("spans in JSON: %w", err)
		}
		spans = append(spans, readAll(traces.GetResourceSpans())...)
	}
}

// idsInBase64 converts the ids, in place. OTLP's JSON is that of its protocol buffers,
// except that ids are hexadecimal.
func idsInBase64(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = idsInBase64(value[i])
		}
	case map[string]any:
		for key, member := range value {
			text, ok := member.(string)
			if ok && (key == "traceId" || key == "spanId" || key == "parentSpanId") {
				if id, err := hex.DecodeString(text); err == nil {
					value[key] = base64.StdEncoding.EncodeToString(id)
				}
			} else {
				value[key] = idsInBase64(member)
			}
		}
	}
	return value
}
