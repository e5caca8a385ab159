package meter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// Sources are read at each scrape. Every field must be set.
type Sources struct {
	Plugins func() []v1.Plugin
	Pools   func() []postgres.PoolStats
	Replica func() v1.Replica
	// Ledger returns the state of the whole system. It is called by one caller at a time,
	// for answerWithin at most, and not again for keepFor. When it runs out of time, it
	// returns what it has by then, as store.Metrics does.
	Ledger func(ctx context.Context, window time.Duration) (v1.Metrics, error)
	// TypeLabel is the name of a job type, or one for all that nobody has
	// declared.
	TypeLabel func(jobType string) string
}

// Watch adds the sources to the metrics. Call it once.
func (m *Meters) Watch(s Sources) error {
	if err := errors.Join(
		watchPlugins(m.meter, s.Plugins),
		watchPools(m.meter, s.Pools),
		watchReplica(m.meter, s.Replica),
		watchLedger(m.meter, &ledger{ask: s.Ledger}, s.TypeLabel),
	); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return nil
}

// observables declares instruments that one callback observes, and gathers
// what goes wrong.
type observables struct {
	meter metric.Meter
	all   []metric.Observable
	err   error
}

func (o *observables) gauge(name, unit, meaning string) metric.Float64Observable {
	made, err := o.meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return o.declared(made, err)
}

func (o *observables) counter(name, unit, meaning string) metric.Float64Observable {
	made, err := o.meter.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(meaning))
	return o.declared(made, err)
}

// declared gathers an instrument. Each has floats as values, as in Prometheus.
func (o *observables) declared(made metric.Float64Observable, err error) metric.Float64Observable {
	o.all = append(o.all, made)
	o.err = errors.Join(o.err, err)
	return made
}

func (o *observables) observe(read func(metric.Observer)) error {
	if o.err != nil {
		return o.err
	}
	_, err := o.meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		read(observer)
		return nil
	}, o.all...)
	return err
}

func label(name, value string) metric.ObserveOption {
	return metric.WithAttributes(attribute.String(name, value))
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
