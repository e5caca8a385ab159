/*
 * Gates: three jobs that share limits, from their parking to their end, and two orchestrators
 * whose admitters let them pass. Jobs 0 and 1 have a key of which one may run at once. All three
 * have a type of which one or two may run at once. So a job can be stopped by either gate, and
 * wait in the lane of that one.
 *
 * A round of an admitter is a transaction, which may fail at any point. What it has read is what
 * was there when it read; what others commit meanwhile is for the next round.
 *
 * Each MUTANT_ is Holdfast with one guard missing. model_test.go says which property it violates,
 * and shows that spin notices.
 */

#include "properties.pml"

/* What must hold at any commit. */
hidden byte
	LIMITS_ARE_KEPT,                /* never are there more holders than the limit allows */
	COUNTERS_ARE_RIGHT;             /* jobs that hold a slot, and free slots still in the inbox */

#define JOBS 3
#define KEY 0
#define TYPE 1
#define GATES 2
#define HAS_KEY(j) ((j) < 2)

/* Where a job is. A parked job is in one lane. */
#define IN_LANE_OF_KEY 0
#define IN_LANE_OF_TYPE 1
#define READY 2
#define LEASED 3
#define ENDED 4
#define DELAYED 5               /* it waits out its backoff */
#define ENDING 6                /* in a mutant: it has ended, and its slots are not free yet */

#ifndef FAULTS
#define FAULTS 2                /* crashes of admitters */
#endif

byte at[JOBS];
byte used[GATES];               /* the counters, which only admitters write */
byte freed[GATES];              /* the inbox: slots that are free again */
byte woken[GATES];              /* the inbox: how often lanes have got jobs */
byte limit[GATES];
bool locked;                    /* the advisory lock of admission */
byte crashes = FAULTS;
byte retries = 1;

#define HOLDS(j, g) ((at[j] == READY || at[j] == LEASED) && ((g) == TYPE || HAS_KEY(j)))
#define HOLDING(g) ((HOLDS(0, g) -> 1 : 0) + (HOLDS(1, g) -> 1 : 0) + (HOLDS(2, g) -> 1 : 0))

inline check() {
	MUST(LIMITS_ARE_KEPT, HOLDING(KEY) <= limit[KEY] && HOLDING(TYPE) <= limit[TYPE]);
	MUST(COUNTERS_ARE_RIGHT, used[KEY] == HOLDING(KEY) + freed[KEY]);
	MUST(COUNTERS_ARE_RIGHT, used[TYPE] == HOLDING(TYPE) + freed[TYPE])
}

inline park(j) {
	if
	:: HAS_KEY(j) -> at[j] = IN_LANE_OF_KEY
#ifndef MUTANT_PARK_WITHOUT_WAKE
		; woken[KEY]++
#endif
	:: !HAS_KEY(j) -> at[j] = IN_LANE_OF_TYPE
#ifndef MUTANT_PARK_WITHOUT_WAKE
		; woken[TYPE]++
#endif
	fi
}

inline free(j) {
	freed[TYPE]++;
	if
	:: HAS_KEY(j) -> freed[KEY]++
	:: else -> skip
	fi
}

/* A job is claimed, and its attempt ends: by its owner, or by a reaper. */
proctype job(byte j) {
end:	do
	:: atomic { at[j] == READY -> at[j] = LEASED }
#ifdef MUTANT_FREE_IN_A_STATEMENT_OF_ITS_OWN
	:: atomic { at[j] == LEASED -> at[j] = ENDING }
	:: atomic { at[j] == ENDING -> free(j); at[j] = ENDED }
	:: atomic { at[j] == ENDING && crashes > 0 -> crashes--; at[j] = ENDED }
#else
	:: atomic { at[j] == LEASED -> free(j);
#ifdef MUTANT_OWNER_AND_REAPER_BOTH_FREE
		if
		:: free(j)
		:: skip
		fi;
#endif
		at[j] = ENDED; check() }
	:: atomic { at[j] == LEASED && retries > 0 -> retries--; free(j); at[j] = DELAYED; check() }
	:: atomic { at[j] == DELAYED -> park(j); check() }
#endif
	od
}

/* What a round has read and decided. */
typedef Round {
	byte freed[GATES];
	byte woken[GATES];
	byte used[GATES];
	byte lane[JOBS];
	byte at[JOBS];
}

#define NEWS (freed[KEY] + freed[TYPE] + woken[KEY] + woken[TYPE] > 0)
#define ROOM(g) (r.used[g] < limit[g])

/* A lane is read if it has got a job or a slot. */
#define LOOK(g) (r.woken[g] + r.freed[g] > 0)

inline pass(j) {
	if
	:: r.at[j] == IN_LANE_OF_KEY && LOOK(KEY) && ROOM(KEY) && ROOM(TYPE) ->
		r.used[KEY]++; r.used[TYPE]++; r.at[j] = READY
	:: r.at[j] == IN_LANE_OF_KEY && LOOK(KEY) && ROOM(KEY) && !ROOM(TYPE) ->
#ifndef MUTANT_WAIT_IN_THE_FIRST_LANE
		r.at[j] = IN_LANE_OF_TYPE
#else
		skip
#endif
	:: r.at[j] == IN_LANE_OF_TYPE && LOOK(TYPE) && ROOM(TYPE) && HAS_KEY(j) && !ROOM(KEY) ->
		r.at[j] = IN_LANE_OF_KEY
	:: r.at[j] == IN_LANE_OF_TYPE && LOOK(TYPE) && ROOM(TYPE) && (!HAS_KEY(j) || ROOM(KEY)) ->
		r.used[TYPE]++;
		if
		:: HAS_KEY(j) -> r.used[KEY]++
		:: else -> skip
		fi;
		r.at[j] = READY
	:: else -> skip
	fi
}

inline read(j) {
	r.lane[j] = at[j]; r.at[j] = at[j]
}

/* Only admitters take jobs out of lanes, so what was in one when it was read still is. */
inline take(j) {
	if
	:: at[j] == r.lane[j] && at[j] <= IN_LANE_OF_TYPE -> at[j] = r.at[j]
	:: else -> skip
	fi
}

proctype admitter() {
	Round r;
end:	do
#ifdef MUTANT_ADMIT_WITHOUT_LOCK
	:: atomic { NEWS ->
#else
	:: atomic { !locked && NEWS -> locked = true;
#endif
		r.freed[KEY] = freed[KEY]; r.freed[TYPE] = freed[TYPE];
		r.woken[KEY] = woken[KEY]; r.woken[TYPE] = woken[TYPE];
		r.used[KEY] = used[KEY] - freed[KEY]; r.used[TYPE] = used[TYPE] - freed[TYPE];
#ifdef MUTANT_DRAIN_COMMITS_AT_ONCE
		freed[KEY] = 0; freed[TYPE] = 0; woken[KEY] = 0; woken[TYPE] = 0
#endif
		}
		if
		:: atomic { true ->
			read(0); read(1); read(2);
			pass(0); pass(1); pass(2) }
			/* Others commit between the decision and what is written. */
			if
			:: atomic { true ->
				take(0); take(1); take(2);
#ifdef MUTANT_ADMIT_WITHOUT_COUNTING
				used[KEY] = used[KEY] - r.freed[KEY]; used[TYPE] = used[TYPE] - r.freed[TYPE];
#else
				used[KEY] = r.used[KEY]; used[TYPE] = r.used[TYPE];
#endif
#if defined(MUTANT_DRAIN_WHAT_CAME_LATER)
				freed[KEY] = 0; freed[TYPE] = 0; woken[KEY] = 0; woken[TYPE] = 0;
#elif !defined(MUTANT_DRAIN_COMMITS_AT_ONCE)
				freed[KEY] = freed[KEY] - r.freed[KEY]; freed[TYPE] = freed[TYPE] - r.freed[TYPE];
				woken[KEY] = woken[KEY] - r.woken[KEY]; woken[TYPE] = woken[TYPE] - r.woken[TYPE];
#endif
				locked = false;
				check() }
			:: atomic { crashes > 0 -> crashes--; locked = false }
			fi
		:: atomic { crashes > 0 -> crashes--; locked = false }
		fi
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
		limit[KEY] = 1;
		if
		:: limit[TYPE] = 1
		:: limit[TYPE] = 2
		fi;
		park(0); park(1); park(2);
#ifdef MUTANT_PARK_WITHOUT_WAKE
		woken[KEY] = true; woken[TYPE]++;
#endif
		run job(0); run job(1); run job(2);
		run admitter();
#ifdef LIVENESS
		run idle()
#else
		run admitter()          /* which another one does not keep from its work: a round ends */
#endif
	}
}

/* No job waits for ever, and no slot is lost. */
#ifdef LIVENESS
ltl ends { <>[] (at[0] == ENDED && at[1] == ENDED && at[2] == ENDED) }
#endif
