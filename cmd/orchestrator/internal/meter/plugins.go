package meter

import (
	"go.opentelemetry.io/otel/metric"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func watchPlugins(meter metric.Meter, status func() []v1.Plugin) error {
	o := observables{meter: meter}
	up := o.gauge("holdfast.plugin.up", "", "Whether a process of the plugin is up: 1, or 0.")
	broken := o.gauge("holdfast.plugin.broken", "",
		"Whether the plugin keeps failing and is launched only now and then: 1, or 0.")
	processes := o.gauge("holdfast.plugin.processes", "{process}", "Processes of the plugin that are up.")
	running := o.gauge("holdfast.plugin.jobs.running", "{job}", "Jobs that the plugin's processes have.")
	free := o.gauge("holdfast.plugin.slots.free", "{slot}", "Jobs that the plugin's processes can still take.")
	restarts := o.counter("holdfast.plugin.restarts", "{restart}",
		"Launches that failed, and processes that ended, while the plugin should have been up.")
	crashes := o.counter("holdfast.plugin.crashes", "{crash}",
		"Processes that ended by themselves or had to be killed, except for a job's timeout or cancel.")
	return o.observe(func(to metric.Observer) {
		for _, plugin := range status() {
			name := label("plugin", plugin.Name)
			to.ObserveFloat64(up, oneIf(plugin.State == job.PluginUp), name)
			to.ObserveFloat64(broken, oneIf(plugin.State == job.PluginBroken), name)
			to.ObserveFloat64(processes, float64(len(plugin.PIDs)), name)
			to.ObserveFloat64(running, float64(plugin.Running), name)
			to.ObserveFloat64(free, float64(plugin.Free), name)
			to.ObserveFloat64(restarts, float64(plugin.Restarts), name)
			to.ObserveFloat64(crashes, float64(plugin.Crashes), name)
		}
	})
}
