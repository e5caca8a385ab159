// Package plugintest runs handlers in a test's own process, through the real
// protocol and the real session of package plugin. It needs no database, no
// orchestrator and no binary.
//
//	func TestPrint(t *testing.T) {
//		h := plugintest.Start(t, plugin.Handle("PRINT", Print))
//		result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "second floor"}})
//		if result.Outcome != plugintest.Succeeded {
//			t.Fatal(result)
//		}
//	}
//
// Run waits for the end of a job's attempt. Begin does not, and returns an
// Attempt that can be stopped as an orchestrator stops one: canceled by a
// client, timed out, at a shutdown, with its lease lost; or left alone, with
// nobody who extends its lease.
//
// # Time
//
// Within a bubble of testing/synctest everything here goes by the bubble's
// clock, leases and timeouts included, so that a test of a timeout of an hour
// takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		h := plugintest.Start(t, plugin.Handle("PRINT", Print, plugin.Timeout(time.Hour)))
//		result := h.Run(t.Context(), plugintest.Job{Payload: Args{To: "nobody"}})
//		// result.Outcome is TimedOut, and result.Took an hour.
//	})
//
// What the handler waits for must be in the bubble, too: timers, channels and
// what other goroutines of the test do, but not the network.
//
// # What is not the same
//
// A real orchestrator kills the process of a handler that does not return after
// its context has ended. A test cannot kill its own: the attempt ends as
// Crashed, and the test fails at its end if the handler still runs then.
// Payloads are not checked against the schema, which happens before a job is
// stored; Types has the schema.
package plugintest
