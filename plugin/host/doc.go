// Package host supervises handler plugins: it launches their processes, keeps
// them up, gives them attempts and reports how those end.
//
// Whatever a handler process does — crash, hang, fork, print, flood, lie — harms
// neither the orchestrator nor other plugins, and every attempt that was started
// is reported as finished exactly once.
//
//	Host ── fleet (one a plugin) ── generation (one a version) ── process (one Work stream) ── attempt
//	           │ conductor, swap         │ breaker                  │ child: the operating system's side
//	           └ which one serves        └ binary, manifest         └ send, receive, health, output
//
// A generation has a goroutine for each process slot; it launches, serves and
// launches again, held back by the generation's breaker. Attempts that must be
// alone have a process each besides. A process that must go is killed with its
// whole process group before anything else is done about it.
//
// A fleet's conductor, a goroutine, alone decides which generation serves. It
// makes a candidate of a changed binary or configuration, starts it beside the one
// that serves, compares what the two declare, gives the candidate a share of the
// attempts, and then either lets it serve or rejects it. The one that has lost
// drains.
package host
