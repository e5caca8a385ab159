// Package conformance checks whether a plugin follows the protocol. It launches the
// plugin as an orchestrator does, speaks the protocol itself, and watches. It does
// not run the plugin in package host, which protects the orchestrator from misbehavior
// and so would hide it. It only takes the rules for manifests from there.
//
//	Run ── check (one per rule) ── process (launch, handshake, connection) ── session (one Work stream)
//
// Every check launches a process and ends it. Checks that need a certain kind of job
// are skipped when the options name none.
package conformance
