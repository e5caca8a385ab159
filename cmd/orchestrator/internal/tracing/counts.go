package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Why spans are dropped.
var (
	// droppedFull: the queue was full.
	droppedFull = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "queue_full")))
	// droppedUnsent: the collector did not take them.
	droppedUnsent = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", "not_sent")))
)

// counts counts spans as sent or dropped.
type counts struct {
	sent, lost metric.Int64Counter
}

func newCounts(meter metric.Meter) (*counts, error) {
	sent, err := meter.Int64Counter("holdfast.spans.sent", metric.WithUnit("{span}"),
		metric.WithDescription("Spans that the collector has taken."))
	lost, lostErr := meter.Int64Counter("holdfast.spans.dropped", metric.WithUnit("{span}"),
		metric.WithDescription("Spans that were dropped, because the collector took them too slowly or not at all."))
	if err := errors.Join(err, lostErr); err != nil {
		return nil, err
	}
	sent.Add(context.Background(), 0)
	lost.Add(context.Background(), 0, droppedFull)
	lost.Add(context.Background(), 0, droppedUnsent)
	return &counts{sent: sent, lost: lost}, nil
}

func (c *counts) exported(n int) { c.sent.Add(context.Background(), int64(n)) }

func (c *counts) dropped(n int, why metric.AddOption) {
	c.lost.Add(context.Background(), int64(n), why)
}
