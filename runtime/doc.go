// Package runtime is a worker: the loops that move jobs from the ready list through
// handlers to their end. A worker trusts only what the database says.
//
//	submit, later or held               submit
//	         |                             |
//	         v        due, or released     v          requeued
//	    +---------+                   +--------+
//	    | created |------------------>| queued |<--------------------+
//	    +---------+                   +--------+                     |
//	                                   ^   |  ^                      |
//	                 backoff is over   |   |  | released,            |
//	         +-------------------------+   |  | or the owner is gone |
//	         |                             |  |                      |
//	         |                     claimed |  |                      |
//	         |                             v  |                      |
//	    +---------+  failed, snoozed  +---------+                    |
//	    |  retry  |<------------------| running |                    |
//	    +---------+                   +---------+                    |
//	                                  /    |    \                    |
//	                                 v     v     v                   |
//	                         succeeded  canceled  dead --------------+
//
// A running job goes back to queued, uncharged, when it is released, when its owner
// vanished, or when its plugin process died with other attempts in it. A client can
// cancel a waiting job (created, queued, retry) at once, and it can expire before it
// starts; the owner cancels a running one. job.Decide decides which outcome leads where,
// and job.State knows the legal transitions; the database refuses all others.
//
// # The files
//
// path.go is a job's way from top to bottom: claim, dispatch, run, decide, settle. The
// types around it say when to take a step, and for which jobs:
//
//	claimer     when to claim, and how many jobs of which types (claimplan.go)
//	dispatcher  which attempt gets the next slot (queue.go)
//	attempt     when to stop a handler: at its timeout, when its job is canceled, when
//	            the lease cannot be proven, and at shutdown. It asks first, and kills
//	            the process after the grace
//	settler     when an ending is written: after its crash hold, once the attempt's
//	            reports are saved
//	followUps   the jobs that a handler has submitted: checked and inserted with its
//	            success, by a settler of their own
//	inFlight    the attempts whose leases this worker holds
//
// Other loops work beside it:
//
//	heartbeat   renews all leases three times a lease, in one transaction on connections
//	            of its own, and learns which jobs to cancel. It names each lease only until
//	            the handler has begun: from then on it is kept by the worker's own row. A
//	            worker without any lease says every four ninths of one that it is alive. A
//	            watch that needs no database asks handlers to stop when a quarter of the
//	            proven time is left, and kills them when a twelfth is left
//	surroundings
//	            counts the other processes, so that many need not all do the same; checks
//	            the process ids of those on this system, and does not wait for the leases
//	            of those that are gone; and sees expired leases
//	reaper      takes over expired leases and settles their jobs
//	scheduler   queues jobs that have become due
//	expirer     cancels jobs that have not started by their time
//	follower    tells those who wait for jobs that these have ended
//	declarer    writes what this worker's plugins declare about job types
//	unserved    reports jobs that nobody serves
//	tally       rolls up the tallies
//	unique      deletes what keeps no job out any more
//	prints      fills in the fingerprints of what earlier orchestrators have buried
//	drain       ends the attempts at shutdown
//
// Package jobs is what the API talks to; package progress saves what attempts report on
// their way; package metrics measures; package spans traces.
//
// Which of them run depends on the roles of the process. maintenance.go has those that belong
// to no process's own jobs; any number of processes runs them, and there is no leader. At shutdown, the loops
// that take on work end first, then those that keep running jobs alive, and last those
// that write.
//
// # What survives what
//
//	plugin process crashes   An attempt that was alone in it is charged and its job
//	                         retried, or dead when attempts or crashes are spent.
//	                         Several attempts are not charged, and run isolated next.
//	                         Their last checkpoints stay.
//	kill -9 of a worker      Its plugin processes end with it. A worker on the same
//	                         system finds it gone within its reap interval (a sixth of
//	                         the lease, at most 5 s; among many, up to four times
//	                         that), another worker when the leases expire. The jobs
//	                         are queued again, uncharged the first
//	                         job.MaxInterruptions times.
//	database restarts        Everything acknowledged is there, leases too: they are
//	                         rows. Handlers continue, and their outcomes wait in
//	                         memory. After three quarters of a lease, handlers are
//	                         stopped, and their jobs recovered when the database is
//	                         back.
//	connection lost at       A settlement is sent again; the lease id shows whether
//	commit                   the first was written. A submission is looked up by its
//	                         id. An unanswered claim is released, uncharged.
//	worker paused            After a pause longer than the lease, others own its jobs.
//	                         On waking it stops its handlers, and the database refuses
//	                         whatever it writes by the lease id. A handler that was
//	                         paused too may still write elsewhere: give systems that
//	                         can compare it the fence, which grows with each claim.
//	hints lost               Jobs start with the next poll, and cancels arrive with the
//	                         next heartbeat.
//	plugin is down           Its jobs stay queued; others run.
//
// A job can run more than once: its handler may have finished when the worker died
// before it could say so. A job cannot be lost, and two owners cannot settle it.
package runtime
