// Peers measures Holdfast beside other job queues on PostgreSQL: River,
// Graphile Worker and pg-boss. All of them run in the same session on the same
// server, in turns. First each tries several settings, those that its authors
// recommend for throughput among them (sweep.go); the best are then measured.
//
//	rate           jobs divided by the time from the start of a phase to the
//	               moment the last job was settled, or the last call answered
//	CPU µs/job     processor time, user and system, of the system's own
//	               processes and of all of PostgreSQL
//	WAL bytes/job  what PostgreSQL wrote to its log, including full-page images
//
// Every phase begins after VACUUM ANALYZE and CHECKPOINT. Every run ends with a
// check that each job was done once.
//
// A peer runs in a driver: a process that gets one order, says that it is ready,
// waits for the start signal, and reports (see order.go). River's driver is this
// program; those of Graphile Worker and pg-boss are in node/. orchestrator bench
// measures Holdfast.
package main
