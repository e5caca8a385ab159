// Package bench measures the orchestrator from outside: the real program, with its
// handlers in a process of their own, on a PostgreSQL that commits durably. Each run has
// a database of its own, and ends with a check that every job was done once.
//
// What the figures mean:
//
//	jobs/s            jobs divided by the time from when the first job could be taken
//	                  until the last was settled
//	CPU µs/job        processor time, user and system, of the orchestrator, its handler
//	                  processes and all of PostgreSQL, background processes included;
//	                  without the load generator
//	WAL bytes/job     what PostgreSQL wrote to its log, full-page images included
//	allocations       objects that the orchestrator and its handler processes took from
//	                  Go's heap; "allocated" counts their bytes
//	dead tuples       rows that wait for vacuum at the end of the run
//	latency           time since a request was due, whether or not the load generator
//	                  could send it then
//
// Every timed phase begins after VACUUM ANALYZE and CHECKPOINT. The load generator shares
// the machine with what it measures.
package bench
