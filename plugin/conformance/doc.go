// Package conformance finds out whether a handler binary keeps to the protocol:
// it launches the binary as an orchestrator does, speaks the protocol itself,
// and watches. Package host protects the orchestrator from misconduct, and so
// would hide it.
//
//	Run ── check (one a rule) ── process (fork, handshake, connection) ── session (one Work stream)
//
// Every check has a process of its own, and none of them is left afterwards.
// Checks that need jobs of a certain kind are skipped when the options name
// none.
package conformance
