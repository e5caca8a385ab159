/*
 * One job from its submission to its end: three workers that claim, renew, settle and crash, a
 * reaper, a client that submits and cancels, an operator that requeues, a database with a
 * synchronous standby, and failovers.
 *
 * Each statement of Holdfast is one step here, as the database makes it one. What stays open is
 * the order of the steps, and what becomes of each commit: see commit(). Of time, only the ticks
 * that a lease lasts are left: they pass whenever nobody renews it, and sometimes although its
 * owner lives, which then has been paused or cut off.
 *
 * Each MUTANT_ is Holdfast with one guard missing. model_test.go says which property it violates,
 * and shows that spin notices.
 */

#include "states.pml"
#include "properties.pml"

/* What must hold. */
hidden byte
	TRANSITIONS_ARE_LEGAL,
	ONE_LEASE,                      /* a job that is claimed has no lease */
	ONE_HANDLER,                    /* none starts while another can prove its lease */
	NO_FENCE_TWICE,                 /* each handler has a higher fence than those before it */
	ONLY_THE_OWNER_SETTLES,
	ONLY_THE_OWNER_RENEWS,
	WHAT_HAS_EXPIRED_STAYS_EXPIRED,
	WHAT_IS_RENEWED_IS_KEPT,        /* nobody takes over a lease that has not expired */
	ATTEMPTS_ARE_LIMITED,
	FAILURES_ARE_CHARGED,           /* a failure that its owner was told of is one of the attempts */
	NONE_IS_LOST,                   /* an accepted job survives a failover */
	CANCELS_ARE_KEPT,               /* no handler starts after the client was told */
	WHAT_IS_TOLD_IS_SAFE,           /* on the standby, too */
	NUMBERS_SUFFICE;                /* no counter of the model wraps */

#define WORKERS 3
#define REAPER WORKERS          /* the reaper settles like a worker, under a lease of its own */
#define HOLDERS (WORKERS + 1)
#define MAX_ATTEMPTS 2
#define NOBODY HOLDERS
#define TICKS 2                 /* how long a lease lasts */
#define MOST 200                /* leases; a byte has room for more */

#ifndef FAULTS
#define FAULTS 2                /* lost answers, canceled waits, crashes, early expiries */
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif

byte faults = FAULTS;

/* What the database has of the job. */
typedef Database {
	bool exists;
	byte state;             /* of the ledger row, which stays QUEUED while there is a lease */
	byte fence;
	byte attempt;
	byte settled_by;        /* the last lease id under which an attempt ended */
	bool ready;             /* it has a row in the ready list */
	bool timer;             /* it has a row in timers */
	bool leased;
	byte lease;             /* the lease's id */
	byte lease_fence;
	byte owner;             /* who got the lease; for checks only */
	byte left;              /* for how long the lease is still valid */
	bool cancel;            /* a cancel was requested */
};

inline copy(to, from) {
	to.exists = from.exists; to.state = from.state; to.fence = from.fence; to.attempt = from.attempt;
	to.settled_by = from.settled_by; to.ready = from.ready; to.timer = from.timer;
	to.leased = from.leased; to.lease = from.lease; to.lease_fence = from.lease_fence; to.owner = from.owner;
	to.left = from.left; to.cancel = from.cancel
}

#include "database.pml"

/* What a worker, or the reaper, knows. */
typedef Holder {
	bool holds;
	byte lease;
	byte fence;
	byte left;              /* for how long a worker can prove the lease */
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
byte renewals = 1;

bool accepted;                  /* the client has its 202 */
bool may_cancel = true;
bool cancel_promised;           /* the client was told that the job is canceled, or will be */
byte last_started;              /* the highest fence under which a handler was started */
bool has_expired;               /* the present lease has, whatever became of it then */
byte failures;                  /* since the last requeue, that their owners were told of */

/* Every change of state is one that the table allows. */
inline become(from, to) {
	MUST(TRANSITIONS_ARE_LEGAL, LEGAL(from, to));
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
	holder[me].holds = false; holder[me].lease = 0; holder[me].fence = 0; holder[me].left = 0;
	holder[me].unsure = false; holder[me].outcome = 0
}

/* settle ends the attempt as the holder wants, if its lease is still there. */
inline settle(me, answered) {
	if
	:: OWNS(me) ->
		MUST(ONLY_THE_OWNER_SETTLES, primary.owner == me);
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
		MUST(ATTEMPTS_ARE_LIMITED, primary.attempt <= MAX_ATTEMPTS);
		primary.lease = 0; primary.lease_fence = 0; primary.owner = NOBODY; primary.left = 0; has_expired = false;
#ifndef MUTANT_RETRY_FORGETS_CANCEL
		primary.cancel = false;
#endif
		commit(answered);
		if
		:: answered ->
			TELL;
			failures = failures + (primary.state == RETRY || primary.state == DEAD);
			MUST(FAILURES_ARE_CHARGED, failures <= primary.attempt);
			forget(me)
		:: else -> holder[me].unsure = true; holder[me].left = 0
		fi
	:: else -> holder[me].unsure = true; holder[me].left = 0
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

#define LESS(ticks) ticks = (ticks > 0 -> ticks - 1 : 0)

/* tick is the time that passes for everybody, also for a standby that lacks the last renewal. */
inline tick() {
	LESS(primary.left); LESS(standby.left);
	LESS(holder[0].left); LESS(holder[1].left); LESS(holder[2].left);
	if
	:: primary.leased && primary.left == 0 -> has_expired = true
	:: else -> skip
	fi
}

/* prove is what a worker may believe after its lease was given or renewed. The answer takes its
   time, so the lease is counted from the moment when the worker asked. */
inline prove(me) {
	if
	:: holder[me].left = TICKS
	:: tick();
#ifdef MUTANT_PROVE_FROM_THE_ANSWER
		holder[me].left = TICKS
#else
		holder[me].left = TICKS - 1
#endif
	fi
}

#if defined(MUTANT_RENEW_WITHOUT_LEASE_ID)
#define RENEWABLE(me) (primary.leased && primary.left > 0)
#elif defined(MUTANT_RENEW_BY_FENCE)
#define RENEWABLE(me) (primary.leased && primary.lease_fence == holder[me].fence && primary.left > 0)
#elif defined(MUTANT_RENEW_WHAT_HAS_EXPIRED)
#define RENEWABLE(me) (primary.leased && primary.lease == holder[me].lease)
#else
#define RENEWABLE(me) (primary.leased && primary.lease == holder[me].lease && primary.left > 0)
#endif

/* renew extends the lease of a worker that believes that it has one. If it is told that it has
   none, it stops its handler. */
inline renew(me, answered) {
	if
	:: RENEWABLE(me) ->
		MUST(ONLY_THE_OWNER_RENEWS, primary.owner == me);
		MUST(WHAT_HAS_EXPIRED_STAYS_EXPIRED, !has_expired);
		primary.left = TICKS;
		commit(answered);
#ifdef MUTANT_RENEW_UNANSWERED
		answered = true;
#endif
		if
		:: answered -> prove(me)
		:: else -> skip
		fi
	:: else ->
		commit(answered);
		if
		:: answered -> TELL; forget(me)
		:: else -> skip
		fi
	fi
}

/* Whether a worker has a handler that it needs not stop. */
#define HANDLES(who) (holder[who].left > 0)

proctype worker(byte me) {
	bool answered;
end:	do
	:: atomic { primary.ready && !holder[me].holds ->
		MUST(ONE_LEASE, !primary.leased);
		MUST(TRANSITIONS_ARE_LEGAL, LEGAL(primary.state, RUNNING));
		MUST(NUMBERS_SUFFICE, next_lease < MOST && primary.fence < MOST);
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
		primary.left = TICKS;
		commit(answered);
#ifdef MUTANT_START_UNANSWERED
		answered = true;
#endif
		if
		:: answered ->          /* the handler starts */
			TELL;
			MUST(NO_FENCE_TWICE, primary.lease_fence > last_started);
			MUST(CANCELS_ARE_KEPT, !cancel_promised);
			MUST(ONE_HANDLER, !HANDLES(0) && !HANDLES(1) && !HANDLES(2));
			last_started = primary.lease_fence;
			holder[me].holds = true; holder[me].lease = primary.lease; holder[me].fence = primary.lease_fence;
			prove(me)
		:: else -> skip         /* it does not know the lease, which expires */
		fi;
		answered = false }
	:: atomic { holder[me].holds && !holder[me].unsure && holder[me].left < TICKS && renewals > 0 ->
		renewals--; renew(me, answered); answered = false }
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
	:: atomic { primary.leased && primary.left == 0 && !holder[REAPER].holds ->
#endif
		MUST(WHAT_IS_RENEWED_IS_KEPT, primary.left == 0);
		MUST(NUMBERS_SUFFICE, next_lease < MOST);
#ifndef MUTANT_REAP_KEEPS_LEASE_ID
		primary.lease = next_lease; next_lease++;
#endif
		primary.left = TICKS; has_expired = false;
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
#define TICKING (primary.leased && primary.left > 0 || standby.leased && standby.left > 0)

proctype clock() {
end:	do
#ifdef MUTANT_REAPED_NEVER_EXPIRES
	:: atomic { TICKING && !(primary.left == 1 && (RENEWED || primary.owner == REAPER)) -> tick() }
#else
	:: atomic { TICKING && !(primary.left == 1 && RENEWED) -> tick() }
#endif
	:: atomic { TICKING && primary.left == 1 && RENEWED && faults > 0 -> faults--; tick() }
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

/* A client submits a job with a key, again and again until it is told that it was accepted, and
   cancels it. More clients than one, and their keys, are in submission.pml. */
proctype client() {
	bool answered;
end:	do
	:: atomic { !accepted ->
		if
		:: !primary.exists ->
			primary.exists = true;
			if
			:: become(CREATED, QUEUED)
			:: primary.state = CREATED; primary.timer = true
			fi
		:: else -> skip
		fi;
		commit(answered);
		if
		:: answered -> TELL; accepted = true
		:: else -> skip
		fi;
		answered = false }
	:: atomic { accepted && may_cancel ->
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
		failures = 0;
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
	:: atomic { failovers > 0 && behind -> failovers--; copy(primary, standby); behind = false; has_expired = (primary.leased && primary.left == 0);
		MUST(NONE_IS_LOST, !accepted || primary.exists) }
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
