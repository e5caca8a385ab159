/*
 * A primary, and a synchronous standby that may lack commits, of which a model says what is in a
 * Database, how to copy it, and how many faults there are.
 */

Database primary;
Database standby;
bool behind;                    /* the standby lacks a commit */

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
#define TELL MUST(WHAT_IS_TOLD_IS_SAFE, !behind)
