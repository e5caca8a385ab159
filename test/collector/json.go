package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// ReadJSON reads spans in OTLP's JSON, which has ids in hexadecimal and numbers of
// 64 bits as text: one document after another, each with its resourceSpans by itself
// or, as Jaeger answers, in a result.
func ReadJSON(from io.Reader) ([]Span, error) {
	var spans []Span
	for decoder := json.NewDecoder(from); ; {
		var document struct {
			jsonTraces
			Result jsonTraces `json:"result"`
		}
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return sorted(spans), nil
		case err != nil:
			return nil, fmt.Errorf("spans in JSON: %w", err)
		}
		for _, resource := range append(document.ResourceSpans, document.Result.ResourceSpans...) {
			about := jsonAttributes(resource.Resource.Attributes)
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans = append(spans, span.span(about))
				}
			}
		}
	}
}

type jsonTraces struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []jsonAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []jsonSpan `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type jsonSpan struct {
	TraceID      string             `json:"traceId"`
	SpanID       string             `json:"spanId"`
	ParentSpanID string             `json:"parentSpanId"`
	Name         string             `json:"name"`
	Kind         otlp.Span_SpanKind `json:"kind"`
	Start        uint64             `json:"startTimeUnixNano,string"`
	End          uint64             `json:"endTimeUnixNano,string"`
	Attributes   []jsonAttribute    `json:"attributes"`
	Events       []struct {
		Name       string          `json:"name"`
		At         uint64          `json:"timeUnixNano,string"`
		Attributes []jsonAttribute `json:"attributes"`
	} `json:"events"`
	Links []struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Attributes []jsonAttribute `json:"attributes"`
	} `json:"links"`
	Status struct {
		Code    otlp.Status_StatusCode `json:"code"`
		Message string                 `json:"message"`
	} `json:"status"`
}

func (s jsonSpan) span(about map[string]any) Span {
	span := Span{
		Trace: s.TraceID, ID: s.SpanID, Parent: s.ParentSpanID, Name: s.Name, Kind: s.Kind, Start: at(s.Start), End: at(s.End),
		Attributes: jsonAttributes(s.Attributes), Resource: about,
		Failed: s.Status.Code == otlp.Status_STATUS_CODE_ERROR, Status: s.Status.Message,
	}
	for _, e := range s.Events {
		span.Events = append(span.Events, Event{e.Name, at(e.At), jsonAttributes(e.Attributes)})
	}
	for _, l := range s.Links {
		span.Links = append(span.Links, Link{l.TraceID, l.SpanID, jsonAttributes(l.Attributes)})
	}
	return span
}

// A jsonAttribute has its value below the name of its kind.
type jsonAttribute struct {
	Key   string                     `json:"key"`
	Value map[string]json.RawMessage `json:"value"`
}

func jsonAttributes(sent []jsonAttribute) map[string]any {
	all := make(map[string]any, len(sent))
	for _, attribute := range sent {
		for kind, text := range attribute.Value {
			all[attribute.Key] = jsonValue(kind, text)
		}
	}
	return all
}

func jsonValue(kind string, text json.RawMessage) any {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return string(text)
	}
	if digits, ok := value.(string); ok && kind == "intValue" {
		if number, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return number
		}
	}
	return value
}
