// Package plugin is the SDK for handlers. A handler is a function that runs the
// jobs of one type. A plugin is a program with one or more handlers, which an
// orchestrator launches.
//
//	type Args struct {
//		Text string `json:"text"`
//	}
//
//	func Echo(ctx context.Context, j plugin.Job[Args]) error {
//		plugin.Logger(ctx).Info("echo", "text", j.Args.Text)
//		return nil
//	}
//
//	func main() { plugin.Serve(plugin.Handle("ECHO", Echo)) }
//
// When the function returns nil, the job has succeeded. Any other error is a
// failure, and the job is attempted again by its retry policy. Permanent,
// RetryAfter, Snooze and Cancel ask for something else. A panic is a failure too;
// the process goes on.
//
// The context ends when the attempt must stop, and context.Cause says why. If the
// function does not return then, its whole process is killed.
//
// Submit makes jobs that become real together with the success of the attempt, and never
// otherwise.
//
// A job can run more than once: the process may die after the function's work and
// before its report. Make effects idempotent, with Job.ID as the key, or protect
// them with Job.Fence.
//
// Package plugintest tests handlers without a database, and package tracing sends
// their spans to a collector.
package plugin
