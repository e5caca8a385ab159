// Package host supervises handler plugins: it launches their processes, keeps
// them up, gives them attempts and reports how those end.
//
// Whatever a handler process does — crash, hang, fork, print, flood, lie — harms
// neither the orchestrator nor other plugins, and every attempt that was started
// is reported as finished exactly once.
//
//	Host ── fleet (one a plugin) ── process (one a slot, one Work stream) ── attempt
//	           │ breaker                │ child: the operating system's side
//	           └ manifest               └ send, receive, health, output
//
// A fleet has a goroutine for each process slot; it launches, serves and
// launches again, held back by the fleet's breaker. A process that must go is
// killed with its whole process group before anything else is done about it.
package host
