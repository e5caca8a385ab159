package meter

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func watchPools(meter metric.Meter, stats func() []postgres.PoolStats) error {
	o := observables{meter: meter}
	connections := o.gauge("holdfast.pool.connections", "{connection}", "Connections to the database, by what they do.")
	most := o.gauge("holdfast.pool.connections.max", "{connection}", "How many connections the pool may have.")
	acquires := o.counter("holdfast.pool.acquires", "{acquire}", "How often a connection was taken.")
	waits := o.counter("holdfast.pool.waits", "{wait}", "How often a connection was waited for, because none was free.")
	waited := o.counter("holdfast.pool.wait", "s", "How long connections were waited for, in all.")
	return o.observe(func(to metric.Observer) {
		for _, pool := range stats() {
			name := attribute.String("pool", pool.Name)
			for state, n := range map[string]int{"acquired": pool.Acquired, "idle": pool.Idle, "opening": pool.Opening} {
				to.ObserveFloat64(connections, float64(n), metric.WithAttributes(name, attribute.String("state", state)))
			}
			only := metric.WithAttributes(name)
			to.ObserveFloat64(most, float64(pool.Max), only)
			to.ObserveFloat64(acquires, float64(pool.Acquires), only)
			to.ObserveFloat64(waits, float64(pool.Waits), only)
			to.ObserveFloat64(waited, pool.Waited.Seconds(), only)
		}
	})
}
