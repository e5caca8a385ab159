// Package host supervises plugins: it launches their processes, keeps them up, gives
// them attempts, and reports how those end.
//
// A plugin process may crash, hang, fork, print, flood or lie. That harms neither the
// orchestrator nor other plugins, and every attempt that was started is reported as
// finished exactly once.
//
//	Host ── fleet (a plugin) ── generation (a version) ── instance (a process and its slots)
//	           │ deploy (its state)    │ breaker, ramp         │ connection.Process: stream, health, attempts
//	           └ conductor             └ binary, manifest      └ osprocess.Process: fork, limits, death
//
// A generation has one goroutine for each process that it keeps up. The goroutine
// launches and serves one process after another, and the generation's breaker delays
// the launches. In addition, each isolated attempt has its own process. A process that
// must end is killed with its whole process group before anything else happens.
//
// Each fleet has one conductor, a goroutine that alone decides which generation serves.
// It turns a changed binary or configuration into a candidate, starts that beside the
// serving generation, compares what the two declare, gives the candidate a share of the
// attempts, and then promotes or rejects it. The loser drains. deploy.go lists the
// states and events.
//
// Locks are taken in this order: Host, fleet, and those of connection.Process.
package host
