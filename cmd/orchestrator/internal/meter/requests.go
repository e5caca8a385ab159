package meter

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// requestSeconds are the upper bounds of buckets; a request may wait a minute
// for its job to end.
var requestSeconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// requests measures HTTP requests. Labels are made once for each kind.
type requests struct {
	duration metric.Float64Histogram

	mu    sync.RWMutex
	kinds map[kind][]metric.RecordOption
}

// kind is a group of requests that are measured together. Their number is
// bounded, since no client can make up a part of one.
type kind struct{ route, method, status string }

func newRequests(meter metric.Meter) (*requests, error) {
	duration, err := meter.Float64Histogram("holdfast.http.request.duration", metric.WithUnit("s"),
		metric.WithDescription("How long HTTP requests took, from their header to the end of the answer."),
		metric.WithExplicitBucketBoundaries(requestSeconds...))
	return &requests{duration: duration, kinds: make(map[kind][]metric.RecordOption)}, err
}

// Request counts an HTTP request: of a route as the router writes it, empty
// for none, and with the status that was answered, 0 for none.
func (m *Meters) Request(route, method string, status int, took time.Duration) {
	m.requests.duration.Record(context.Background(), took.Seconds(),
		m.requests.labels(kind{orNone(route), knownMethod(method), statusClass(status)})...)
}

func (r *requests) labels(k kind) []metric.RecordOption {
	r.mu.RLock()
	made := r.kinds[k]
	r.mu.RUnlock()
	if made != nil {
		return made
	}
	made = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		attribute.String("route", k.route), attribute.String("method", k.method), attribute.String("status", k.status),
	))}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[k] = made
	return made
}

func orNone(route string) string {
	if route == "" {
		return "none"
	}
	return route
}

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// statusClass is "2xx" and the like; "none" when the client got no answer.
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}
