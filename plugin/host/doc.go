// Package host supervises plugins: it launches their processes, keeps them up, gives
// them attempts, and reports how those end.
//
// Whatever a plugin process does (crash, hang, fork, print, flood, lie) harms neither
// the orchestrator nor other plugins, and every attempt that was started is reported as
// finished exactly once.
//
//	Host ── fleet (a plugin) ── generation (a version) ── instance (a process and its slots)
//	           │ deploy (its state)    │ breaker, ramp         │ process.Process: stream, health, attempts
//	           └ conductor             └ binary, manifest      └ child.Process: fork, limits, death
//
// A generation has a goroutine for each process that it keeps up, which launches and
// serves one process after another, delayed by the generation's breaker. Each isolated
// attempt has a process of its own besides. A process that must go is killed with its
// whole process group before anything else happens.
//
// Each fleet has one conductor, a goroutine that alone decides which generation serves.
// It makes a candidate of a changed binary or configuration, starts it beside the
// serving generation, compares what the two declare, gives the candidate a share of the
// attempts, and then promotes or rejects it. The loser drains. The states and events of
// all that are in deploy.go.
//
// Locks are taken in this order: Host, fleet, and those of process.Process.
package host
