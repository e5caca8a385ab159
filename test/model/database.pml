/* The database of lease.pml: a primary, and a synchronous standby that may lack commits. */

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
	bool expired;
	bool cancel;            /* a cancel was requested */
};

Database primary;
Database standby;
bool behind;                    /* the standby lacks a commit */

inline copy(to, from) {
	to.exists = from.exists; to.state = from.state; to.fence = from.fence; to.attempt = from.attempt;
	to.settled_by = from.settled_by; to.ready = from.ready; to.timer = from.timer;
	to.leased = from.leased; to.lease = from.lease; to.lease_fence = from.lease_fence; to.owner = from.owner;
	to.expired = from.expired; to.cancel = from.cancel
}

inline replicate() {
	copy(standby, primary);
	behind = false
}

/*
 * commit ends a statement that wrote. Usually the standby has everything and the answer arrives.
 * Or the answer is lost. Or the wait for the standby is canceled: then the primary shows what the
 * standby may never get, and the caller is told so.
 */
inline commit(answered) {
	if
	:: replicate(); answered = true
	:: faults > 0 -> faults--; replicate(); answered = false
	:: faults > 0 -> faults--; behind = true;
#ifdef MUTANT_CANCELED_WAIT_IS_SUCCESS
		answered = true
#else
		answered = false
#endif
	fi
}

/* Whatever anybody is told must survive a failover. */
#define TELL assert(!behind)
