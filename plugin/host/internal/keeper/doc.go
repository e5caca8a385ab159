// Package keeper runs a process under a keeper: a small process of our own that starts
// it, waits for it, and kills everything that it has forked.
//
// A keeper is a subreaper: everything that its process forks stays the keeper's
// descendant, in any session, group or environment. The process and its descendants are
// killed
//
//   - by the orchestrator, which may treat the process as its own child;
//   - by the keeper, as soon as the process has exited;
//   - by the keeper, when the line hangs up because the orchestrator has died;
//   - by the keeper, at the time that the orchestrator has set, if it is stopped and so
//     has not moved that time.
//
// The line is a socket between the orchestrator and the keeper. The orchestrator sends
// the launch, as JSON after its length, and then orders of 8 bytes. The keeper sends
// reports, as JSON. All this works on Linux only.
package keeper
