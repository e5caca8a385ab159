// Checker judges a chaos run by what it has recorded:
//
//	checker [-json] DIR
//
// It prints a verdict for each invariant, and exits with 0 if all hold, with 1 if
// one is violated, and with 2 if it cannot read the run. A run that did too little
// violates the invariant "enough".
//
// The checker shares no code with the product: it knows the tables and the API from their
// documentation, and has a transition table of its own. It trusts what clients were
// answered, what handlers wrote, and what the server's log says was committed:
//
//   - A call without an answer may have happened at any later time, or never.
//   - If commits do not wait for the standby, a failover may lose what was acknowledged
//     before it. The same goes for settlements that do not wait for the disk, if a server
//     crashes.
//   - A plain read may show what no standby has yet. So what clients read before a failover
//     or a crash says nothing about what they read after it.
//   - Leases are judged by the database's clock. One that is kept expires with its worker.
//     Times of handlers and clients are compared with it only where a difference of [slack]
//     does not matter.
//   - A handler that did not end may have had its effect, or not.
package main
