package meter

import (
	"go.opentelemetry.io/otel/metric"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func watchReplica(meter metric.Meter, status func() v1.Replica) error {
	o := observables{meter: meter}
	used := o.gauge("holdfast.replica.used", "", "Whether lists and figures come from the replica of the database: 1, or 0.")
	lag := o.gauge("holdfast.replica.lag", "s",
		"How old what the replica shows is at most; at least, if it is behind by more than is known.")
	reads := o.counter("holdfast.replica.reads", "{read}", "Reads of lists and figures, by the replica, or why by the primary.")
	return o.observe(func(to metric.Observer) {
		now := status()
		if !now.Configured {
			return
		}
		to.ObserveFloat64(used, oneIf(now.Used))
		if now.LagSeconds != nil {
			to.ObserveFloat64(lag, *now.LagSeconds)
		}
		for result, n := range now.Reads {
			to.ObserveFloat64(reads, float64(n), label("result", result))
		}
	})
}
