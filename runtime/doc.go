// Package runtime is a worker: the loops that move jobs from the ready list
// through handlers to their end, on the database's word alone.
//
//	submit, later or held               submit
//	         |                             |
//	         v        due, or released     v          requeued
//	    +---------+                   +--------+
//	    | created |------------------>| queued |<--------------------+
//	    +---------+                   +--------+                     |
//	                                   ^   |  ^                      |
//	                 backoff is over   |   |  | given back,          |
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
// From running back to queued go jobs that are given back, whose owner vanished,
// or whose process died with others in it, uncharged. What waits (created, queued, retry) can be canceled at
// once; what runs is canceled by its owner. Which outcome leads where is
// decided by job.Decide, and which transitions there are by job.State; the
// database refuses every other.
//
// # The loops
//
// The claimer asks for as many jobs as there are free slots, of the types that
// live plugins serve, and of short jobs for some ahead, but for no more at once
// than twice what the last claim brought. It asks when jobs are wanted and known
// to wait, when a hint comes, and at every poll; while jobs trickle in, every two
// milliseconds. What a claim
// brought whose answer was lost it lets go again.
//
// The lineup keeps what is claimed until its plugin has a slot for it, and
// starts the next job the moment one has ended. What has lined up for a second,
// whose plugin is gone, or that is still there at shutdown, is given back. Jobs
// that a process has died under wait in a line of their own for a process of
// their own.
//
// An attempt, one for each job that runs here, stands between the handler and
// the lease. It stops the handler at its timeout, when its job is canceled,
// when the lease cannot be proven, and at shutdown: it asks first, and kills
// the process after the grace.
//
// The settler writes down how attempts end, all that gathered during one flush
// in the next. It tries until the database answers, and holds the leases until
// then. The ends of attempts whose process has died it may keep until their
// leases would have run out.
//
// A notebook for each plugin saves what its attempts report on their way:
// progress, checkpoints, log lines. It keeps only the last that each attempt has
// reported, and writes an attempt that runs at most once an interval
// (Config.ReportInterval). The end of an attempt goes to the settler once the last of
// its notes is saved. So an attempt that reports nothing never waits for those
// that do, nor one plugin's for another's. When the notes of a plugin that are not
// written yet take too much memory, its processes are read no further until they
// are.
//
// The heartbeat renews all leases three times a lease, in one statement on
// connections of their own, and learns which jobs are to be canceled. Beside
// it a watch that needs no database asks handlers to stop when a quarter of
// the proven time is left, and kills them when a twelfth is: before the lease
// can be anybody else's.
//
// The reaper takes over leases that have expired, in batches, and settles
// their jobs. Of workers on this system it knows by the process id whether
// they are gone, and then waits for no lease of theirs.
//
// The scheduler moves jobs to the ready list when they are due, and sleeps
// until the next is.
//
// The submitter stores jobs in groups, like the settler. The hints tell other
// processes that there is something to do; nothing depends on them but
// latency. The catalog keeps what every process has declared about job types.
// The watch reports jobs that nobody serves.
//
// Reaper and scheduler run in every worker; there is no leader. At shutdown
// the loops that take on work end first, then those that keep running jobs
// alive, and last those that write.
//
// # What survives what
//
//	handler crashes          A lone attempt is charged and its job retried, or
//	                         dead when attempts or crashes are spent. Several
//	                         are not charged, and run alone next. Their last
//	                         checkpoints stay.
//	kill -9 of a worker      Its handlers end with it. A worker on the same
//	                         system finds it gone within its reap interval
//	                         (a sixth of the lease, at most 5 s), another when
//	                         the leases expire. The jobs are queued anew,
//	                         uncharged for the first job.MaxInterruptions times.
//	database restarts        Everything acknowledged is there, leases too, for
//	                         they are rows. Handlers go on; their outcomes wait
//	                         in memory. If it takes longer than three quarters
//	                         of a lease, handlers are stopped, and their jobs
//	                         recovered when the database is back.
//	connection lost at       A settlement is sent again; the lease id tells
//	commit                   whether the first was written. A submission is
//	                         looked up by its id. A claim is let go, uncharged.
//	worker paused            If for longer than the lease, its jobs are others';
//	                         on waking it stops its handlers, and whatever it
//	                         still writes is refused by the lease id. A handler
//	                         that slept along may do what it was about to do:
//	                         the fence it was given grows with each claim, for
//	                         whatever it writes to to compare.
//	hints lost               Jobs start with the next poll, cancels arrive with
//	                         the next heartbeat.
//	plugin is down           Its jobs stay queued, untouched; others run.
//
// A job can run more than once: its handler may have finished when the worker
// died before it could say so. It cannot be lost, and it cannot be settled by
// two owners.
package runtime
