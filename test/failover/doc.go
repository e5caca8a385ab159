// Package failover tests the real orchestrator on a primary whose commits wait
// for a standby, while the standby stalls and then takes over: nothing that was
// acknowledged is lost, no key makes two jobs, and no fence is issued twice. It also measures
// what crashes lose under settings that promise less.
package failover
