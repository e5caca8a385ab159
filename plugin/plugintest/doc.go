// Package plugintest tests handlers. It runs them in the test's process, through the
// real protocol and the code of package plugin. It needs no database, no orchestrator
// and no binary.
//
//	func TestPrint(t *testing.T) {
//		h := plugintest.Start(t, plugin.Handle("PRINT", Print))
//		result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "second floor"}})
//		if result.Outcome != plugintest.Succeeded {
//			t.Fatal(result)
//		}
//	}
//
// Run waits for the end of the attempt. Begin returns a running Attempt, which you can
// stop as an orchestrator does: because a client cancels the job, at a timeout, at a
// shutdown, or because the lease is lost.
//
// # Time
//
// In a bubble of testing/synctest, everything uses the bubble's clock, including
// leases and timeouts. A test of a timeout of one hour takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		h := plugintest.Start(t, plugin.Handle("PRINT", Print, plugin.Timeout(time.Hour)))
//		result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "nobody"}})
//		// result.Outcome is TimedOut, and result.Took an hour.
//	})
//
// What the handler waits for must be in the bubble too: timers, channels and other
// goroutines of the test, but not the network.
//
// # Differences
//
// An orchestrator kills the process of a handler that does not return after its
// context has ended. Here the attempt ends as Crashed, and the test fails if the
// handler still runs at its end.
//
// Payloads are not checked against the schema. An orchestrator does that when a job is
// submitted. Types returns the schema.
package plugintest
