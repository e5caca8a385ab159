// Package bench measures the orchestrator from outside: the real program, with
// its handlers in a process of their own, on a PostgreSQL that commits
// durably. A run has a database of its own and ends with a check that every
// job was done once.
//
// What a figure means:
//
//	jobs/s            jobs divided by the time from the moment the first could
//	                  be taken to the moment the last was settled
//	CPU µs/job        processor time, user and system, of the orchestrator, its
//	                  handler processes and all of PostgreSQL, background
//	                  processes included; not that of the load generator
//	WAL bytes/job     what PostgreSQL wrote to its log, full-page images included
//	allocations       objects that the orchestrator and its handler processes took
//	                  from Go's heap; allocated are their bytes
//	dead tuples       rows that wait for vacuum when the run is over
//	latency           from the moment a request was due, whether or not the load
//	                  generator could send it then
//
// Every timed phase begins after VACUUM ANALYZE and CHECKPOINT. The load
// generator shares the machine with what it measures.
package bench
