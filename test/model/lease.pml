/*
 * One job from its submission to its end: three workers that claim, renew, settle and crash, a
 * reaper, a client that submits with a key and cancels, an operator that requeues, a database
 * with a synchronous standby, and failovers.
 *
 * Each statement of Holdfast is one step here, as the database makes it one. What stays open is
 * the order of the steps, and what becomes of each commit: see commit(). Time is left out: a
 * lease may expire whenever nobody renews it, and sometimes although its owner lives, which then
 * has been paused or cut off.
 *
 * Each MUTANT_ is Holdfast with one guard missing. model_test.go shows that spin notices.
 */

#include "states.pml"

#define WORKERS 3
#define REAPER WORKERS          /* the reaper settles like a worker, under a lease of its own */
#define HOLDERS (WORKERS + 1)
#define MAX_ATTEMPTS 2
#define NOBODY HOLDERS

#ifndef FAULTS
#define FAULTS 2                /* lost answers, canceled waits, crashes, early expiries */
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif

byte faults = FAULTS;

#include "database.pml"

/* What a worker, or the reaper, knows. */
typedef Holder {
	bool holds;
	byte lease;
	byte fence;
	bool unsure;            /* it has not learned what became of its settlement */
	byte outcome;
};

Holder holder[HOLDERS];

#define SUCCESS 0
#define FAILURE 1
#define GIVEN_BACK 2

byte next_lease = 1;            /* lease ids are random, so they never come again, even after a failover */
byte failovers = FAILOVERS;
byte requeues = 1;
byte edits = 1;
byte give_backs = 1;

bool accepted;                  /* the client has its 202 */
bool may_cancel = true;
bool cancel_promised;           /* the client was told that the job is canceled, or will be */
byte last_started;              /* the highest fence under which a handler was started */
byte copies;                    /* how many jobs the submissions with one key have made */

/* Every change of state is one that the table allows. */
inline become(from, to) {
	assert(LEGAL(from, to));
	primary.state = to;
	primary.ready = (to == QUEUED);
	primary.timer = (to == CREATED || to == RETRY)
}

#if defined(MUTANT_SETTLE_WITHOUT_LEASE_ID)
#define OWNS(me) (primary.leased)
#elif defined(MUTANT_SETTLE_BY_FENCE)
#define OWNS(me) (primary.leased && primary.lease_fence == holder[me].fence)
#else
#define OWNS(me) (primary.leased && primary.lease == holder[me].lease)
#endif

inline forget(me) {
	holder[me].holds = false; holder[me].lease = 0; holder[me].fence = 0;
	holder[me].unsure = false; holder[me].outcome = 0
}

/* settle ends the attempt as the holder wants, if its lease is still there. */
inline settle(me, answered) {
	if
	:: OWNS(me) ->
		assert(primary.owner == me);    /* nobody ends another's attempt */
		primary.leased = false;
#ifndef MUTANT_SETTLE_KEEPS_FENCE
		primary.fence = primary.lease_fence;
#endif
		primary.settled_by = holder[me].lease;
		if
		:: holder[me].outcome == SUCCESS ->
			primary.attempt++;
			become(RUNNING, SUCCEEDED)
#ifndef MUTANT_RETRY_FORGETS_CANCEL
		:: holder[me].outcome != SUCCESS && primary.cancel ->
			become(RUNNING, CANCELED)
		:: holder[me].outcome == FAILURE && !primary.cancel ->
#else
		:: holder[me].outcome == FAILURE ->
#endif
#ifndef MUTANT_FAILURE_IS_FREE
			primary.attempt++;
#endif
			if
#ifdef MUTANT_RETRY_WITHOUT_END
			:: become(RUNNING, RETRY)
#else
			:: primary.attempt < MAX_ATTEMPTS -> become(RUNNING, RETRY)
			:: primary.attempt >= MAX_ATTEMPTS -> become(RUNNING, DEAD)
#endif
			fi
#ifndef MUTANT_RETRY_FORGETS_CANCEL
		:: holder[me].outcome == GIVEN_BACK && !primary.cancel ->
#else
		:: holder[me].outcome == GIVEN_BACK ->
#endif
			become(RUNNING, QUEUED);
#ifdef MUTANT_GIVEN_BACK_IS_NOT_READY
			primary.ready = false
#endif
		fi;
		assert(primary.attempt <= MAX_ATTEMPTS);
		primary.lease = 0; primary.lease_fence = 0; primary.owner = NOBODY; primary.expired = false;
#ifndef MUTANT_RETRY_FORGETS_CANCEL
		primary.cancel = false;
#endif
		commit(answered);
		if
		:: answered -> TELL; forget(me)
		:: else -> holder[me].unsure = true
		fi
	:: else -> holder[me].unsure = true
	fi
}

/* ask finds out what became of a settlement: it writes, so that what it saw is on the standby. */
inline ask(me, answered) {
#ifdef MUTANT_ASK_WITHOUT_BARRIER
	answered = true;
#else
	commit(answered);
#endif
	if
	:: answered && primary.settled_by == holder[me].lease -> TELL; forget(me)
	:: answered && primary.settled_by != holder[me].lease && OWNS(me) -> holder[me].unsure = false
	:: answered && primary.settled_by != holder[me].lease && !OWNS(me) -> forget(me)
	:: else -> skip
	fi
}

/* Whether somebody renews the lease. Somebody who has lost it does not. */
#define RENEWS(who) (holder[who].holds && holder[who].lease == primary.lease)
#define RENEWED (RENEWS(0) || RENEWS(1) || RENEWS(2) || RENEWS(REAPER))

proctype worker(byte me) {
	bool answered;
end:	do
	:: atomic { primary.ready && !holder[me].holds ->
		assert(!primary.leased);        /* at most one lease */
		assert(LEGAL(primary.state, RUNNING));
#ifndef MUTANT_CLAIM_STAYS_READY
		primary.ready = false;
#endif
		primary.leased = true;
		primary.lease = next_lease; next_lease++;
#ifdef MUTANT_CLAIM_KEEPS_FENCE
		primary.lease_fence = primary.fence;
#else
		primary.lease_fence = primary.fence + 1;
#endif
		primary.owner = me;
		primary.expired = false;
		commit(answered);
#ifdef MUTANT_START_UNANSWERED
		answered = true;
#endif
		if
		:: answered ->          /* the handler starts */
			TELL;
			assert(primary.lease_fence > last_started);
			assert(!cancel_promised);
			last_started = primary.lease_fence;
			holder[me].holds = true; holder[me].lease = primary.lease; holder[me].fence = primary.lease_fence
		:: else -> skip         /* it does not know the lease, which expires */
		fi;
		answered = false }
	:: atomic { holder[me].holds && !holder[me].unsure ->
		if
		:: holder[me].outcome = SUCCESS
		:: holder[me].outcome = FAILURE
		:: give_backs > 0 -> give_backs--; holder[me].outcome = GIVEN_BACK
		fi;
		settle(me, answered); answered = false }
	:: atomic { holder[me].holds && holder[me].unsure -> ask(me, answered); answered = false }
	:: atomic { holder[me].holds && faults > 0 -> faults--; forget(me) }    /* it crashes, and starts again */
	od
}

proctype reaper() {
	bool answered;
end:	do
#ifdef MUTANT_REAP_WITHOUT_LOOKING_AGAIN
	:: atomic { primary.leased && !holder[REAPER].holds ->
#else
	:: atomic { primary.leased && primary.expired && !holder[REAPER].holds ->
#endif
		assert(primary.expired);        /* who renewed in time keeps the lease */
#ifndef MUTANT_REAP_KEEPS_LEASE_ID
		primary.lease = next_lease; next_lease++;
#endif
		primary.expired = false;
		primary.owner = REAPER;
		commit(answered);
		if
		:: answered -> holder[REAPER].holds = true; holder[REAPER].lease = primary.lease; holder[REAPER].fence = primary.lease_fence
		:: else -> skip
		fi;
		answered = false }
	:: atomic { holder[REAPER].holds && !holder[REAPER].unsure ->
		holder[REAPER].outcome = FAILURE; settle(REAPER, answered); answered = false }
	:: atomic { holder[REAPER].holds && holder[REAPER].unsure -> ask(REAPER, answered); answered = false }
	:: atomic { holder[REAPER].holds && faults > 0 -> faults--; forget(REAPER) }
	od
}

/* Time passes. A lease that nobody renews expires; another one only by a fault. */
proctype clock() {
end:	do
#ifdef MUTANT_REAPED_NEVER_EXPIRES
	:: atomic { primary.leased && !primary.expired && !RENEWED && primary.owner != REAPER -> primary.expired = true }
#else
	:: atomic { primary.leased && !primary.expired && !RENEWED -> primary.expired = true }
#endif
	:: atomic { primary.leased && !primary.expired && RENEWED && faults > 0 -> faults--; primary.expired = true }
	od
}

/* The promoter moves what is due to the ready list. */
proctype promoter() {
	bool answered;
end:	do
#ifdef MUTANT_PROMOTE_WITHOUT_TIMER
	:: atomic { primary.exists && (primary.timer || primary.leased) ->
#else
	:: atomic { primary.timer ->
#endif
		become(primary.state, QUEUED); commit(answered); answered = false }
	od
}

/* A client submits a job with a key, again and again until it is told that it was accepted. */
proctype client() {
	bool answered;
end:	do
	:: atomic { !accepted && !primary.exists ->
		primary.exists = true; copies = 1;
		if
		:: become(CREATED, QUEUED)
		:: primary.state = CREATED; primary.timer = true
		fi;
		commit(answered);
		if
		:: answered -> TELL; accepted = true
		:: else -> skip
		fi;
		answered = false }
	:: atomic { !accepted && primary.exists ->
#ifdef MUTANT_REPLAY_SUBMITS_AGAIN
		copies++;
#endif
		assert(copies == 1);    /* one job for a key */
#ifdef MUTANT_REPLAY_WITHOUT_BARRIER
		answered = true;
#else
		commit(answered);
#endif
		if
		:: answered -> TELL; accepted = true
		:: else -> skip
		fi;
		answered = false }
	:: atomic { accepted && may_cancel ->
		assert(primary.exists);         /* no accepted job is lost */
		if
		:: primary.leased ->
			primary.cancel = true
		:: !primary.leased && (primary.ready || primary.timer) -> become(primary.state, CANCELED)
		:: else -> skip         /* it has ended */
		fi;
#ifdef MUTANT_CANCEL_WITHOUT_BARRIER
		if
		:: FINAL(primary.state) || primary.cancel -> answered = true
		:: else -> commit(answered)
		fi;
#else
		commit(answered);       /* also if there was nothing to change: the answer must be safe */
#endif
		if
		:: answered -> TELL; may_cancel = false; cancel_promised = (primary.state == CANCELED || primary.cancel)
		:: else -> skip         /* it asks again */
		fi;
		answered = false }
	od
}

/* An operator requeues a dead job, and postpones one that waits. */
proctype operator() {
	bool answered;
end:	do
#ifdef MUTANT_REQUEUE_WHATEVER_IT_IS
	:: atomic { FINAL(primary.state) && primary.exists && requeues > 0 ->
#else
	:: atomic { primary.state == DEAD && requeues > 0 ->
#endif
		requeues--;
		become(primary.state, QUEUED);
		primary.attempt = 0;
		cancel_promised = false;
		commit(answered); answered = false }
#ifdef MUTANT_POSTPONE_RUNNING
	:: atomic { primary.exists && primary.state == QUEUED && edits > 0 ->
#else
	:: atomic { primary.ready && edits > 0 ->
#endif
		edits--;
		if
		:: primary.attempt == 0 -> become(QUEUED, CREATED)
		:: else -> become(QUEUED, RETRY)
		fi;
		commit(answered); answered = false }
	od
}

/* The primary dies, and the standby takes its place with what it has. */
proctype failover() {
end:	do
	:: atomic { failovers > 0 && behind -> failovers--; copy(primary, standby); behind = false;
		assert(!accepted || primary.exists) }   /* no accepted job is lost */
	od
}

/* Time also passes when nothing else happens any more. Spin looks for cycles, not for ends. */
proctype idle() {
end:	do
	:: true -> skip
	od
}

init {
	atomic {
		primary.owner = NOBODY; standby.owner = NOBODY;
		run worker(0); run worker(1); run worker(2);
		run reaper(); run clock(); run promoter(); run client(); run operator(); run failover();
#ifdef LIVENESS
		run idle()
#endif
	}
}

/* Every accepted job ends, however the faults fall. */
#ifdef LIVENESS
ltl ends { <>[] (primary.exists && FINAL(primary.state)) }
#endif
