// Package plugin is what a handler is written with. A handler is a function
// that does one job type; a handler binary serves one or more of them to the
// orchestrator that launches it.
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
// A nil error ends the job. Any other is a failure that is tried again by the
// job type's retry policy, unless it says otherwise: see Permanent,
// RetryAfter, Snooze and Cancel. A panic is a failure too; the process
// survives it.
//
// The context ends when the attempt is to stop: context.Cause tells why. A
// handler that goes on regardless is killed with its whole process.
package plugin
