// Package keeper runs a process under a keeper: a small process of our own that
// starts it, waits for it, and ends everything that it has forked.
//
// A keeper is a subreaper: whatever its process forks, in whatever session, group
// or environment, stays its descendant. The process and its family are killed
//
//   - by whoever started the keeper, as if the process were its own child;
//   - by the keeper, what is left of the family when the process has exited;
//   - by the keeper, all of it when the line to the orchestrator hangs up, which is
//     when that has died, or at the time that the orchestrator has named and not
//     postponed, which is when that is stopped.
//
// The two sides talk over a socket, the line. Down it go the launch, as JSON after
// its length, and then orders of 8 bytes; up it come reports, as JSON.
package keeper
