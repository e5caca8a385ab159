// Peers measures Holdfast beside other job queues on PostgreSQL: River,
// Graphile Worker and pg-boss. All of them run in the same session on the same
// server, in turns, each with the settings that its authors document for the
// most throughput.
//
//	rate           jobs divided by the time from the start of a phase to the
//	               moment the last job was settled, or the last call answered
//	CPU µs/job     processor time, user and system, of the system's own
//	               processes and of all of PostgreSQL
//	WAL bytes/job  what PostgreSQL wrote to its log, full-page images included
//
// Every phase begins after VACUUM ANALYZE and CHECKPOINT, and every run ends
// with a check that each job was done once.
//
// A peer runs in a driver: a process that takes one order, says that it is
// ready, waits for the word to go, and reports (see order.go). River's driver
// is this very program; those of Graphile Worker and pg-boss are in node/.
// Holdfast is measured by its own program, with orchestrator bench.
package main
