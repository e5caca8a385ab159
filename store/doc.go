// Package store keeps jobs in PostgreSQL: the ledger and its lists, one verb
// for each transition.
//
// Every verb is one statement in its own file under sql/, whose header says
// what it does, which clock it reads, how it locks, what fences it and which
// index it walks. What is to become of a job is decided elsewhere (package
// job); the store applies it, and only for whoever shows the lease.
package store
