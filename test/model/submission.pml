/*
 * Submissions with one idempotency key: two clients send the same request, each again and again
 * until it is told which job it has become. An orchestrator gives each request that it gets a new
 * id, stores the job under it, and looks the id up if it got no answer. If it gets none again, it
 * tells its client that it does not know.
 *
 * The rule of the database is its unique index: a statement that stores a job whose key is there
 * writes the row that has it again instead, so that its answer waits for the standby, too.
 *
 * Each MUTANT_ is Holdfast with one guard missing. model_test.go says which property it violates,
 * and shows that spin notices.
 */

#include "properties.pml"

/* What must hold. */
hidden byte
	ONE_JOB_FOR_A_KEY,
	ONE_ANSWER_FOR_A_KEY,           /* whoever is told of a job is told of the same one */
	NONE_IS_LOST,                   /* a job that somebody was told of survives a failover */
	WHAT_IS_TOLD_IS_SAFE,           /* on the standby, too */
	NUMBERS_SUFFICE;                /* no counter of the model wraps */

#define CLIENTS 2
#define MOST 200                /* ids; a byte has room for more */
#define NONE 0

#ifndef FAULTS
#define FAULTS 2                /* lost answers, canceled waits, crashes of orchestrators */
#endif
#ifndef FAILOVERS
#define FAILOVERS 2
#endif

byte faults = FAULTS;
byte failovers = FAILOVERS;
byte next_id = 1;               /* ids are random, so they never come again, even after a failover */

/* What the database has of the key. */
typedef Database {
	byte jobs;              /* how many have the key */
	byte id;                /* of the one that the index finds */
};

inline copy(to, from) {
	to.jobs = from.jobs; to.id = from.id
}

#include "database.pml"

byte told[CLIENTS];             /* the job that each client was told of */

/* At any commit, and after a failover. */
inline check() {
	MUST(ONE_JOB_FOR_A_KEY, primary.jobs <= 1)
}

inline tell(me) {
	TELL;
	told[me] = primary.id;
	MUST(ONE_ANSWER_FOR_A_KEY, told[1 - me] == NONE || told[1 - me] == told[me]);
	id = NONE; asks = false
}

/* Whether the index lets a job in. */
#ifdef MUTANT_LOOK_THEN_STORE
#define FREE free
#else
#define FREE (primary.jobs == 0)
#endif

inline store(answered) {
	if
#ifdef MUTANT_REPLAY_SUBMITS_AGAIN
	:: true ->
#else
	:: FREE ->
#endif
		primary.jobs++;
		if
		:: primary.id == NONE -> primary.id = id
		:: else -> skip
		fi;
		check();
		commit(answered)
	:: else ->
#ifdef MUTANT_REPLAY_WITHOUT_BARRIER
		answered = true
#else
		commit(answered)
#endif
	fi
}

/* One client, and the orchestrator that has its request. */
proctype client(byte me) {
	byte id;                /* of its request, while there is one */
	bool asks;              /* the orchestrator does not know what became of it */
	bool answered;
#ifdef MUTANT_LOOK_THEN_STORE
	bool looked;
	bool free;
#endif
end:	do
	:: atomic { told[me] == NONE && id == NONE ->
		MUST(NUMBERS_SUFFICE, next_id < MOST);
		id = next_id; next_id++ }
#ifdef MUTANT_LOOK_THEN_STORE
	:: atomic { id != NONE && !asks && !looked -> looked = true; free = (primary.jobs == 0) }
	:: atomic { id != NONE && !asks && looked -> looked = false;
#else
	:: atomic { id != NONE && !asks ->
#endif
		store(answered);
		if
		:: answered -> tell(me)
		:: else -> asks = true
		fi;
		answered = false }
	:: atomic { id != NONE && asks ->
#ifdef MUTANT_LOOK_UP_WITHOUT_BARRIER
		answered = true;
#else
		commit(answered);
#endif
		if
		:: answered && primary.id == id -> tell(me)
		:: answered && primary.id != id -> asks = false         /* it stores it now */
		:: else -> id = NONE; asks = false                      /* the client sends it again */
		fi;
		answered = false }
	:: atomic { id != NONE && faults > 0 -> faults--; id = NONE; asks = false }
	od
}

/* The primary dies, and the standby takes its place with what it has. */
proctype failover() {
end:	do
	:: atomic { failovers > 0 && behind -> failovers--; copy(primary, standby); behind = false;
		check();
		MUST(NONE_IS_LOST, (told[0] == NONE || told[0] == primary.id) && (told[1] == NONE || told[1] == primary.id)) }
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
		run client(0); run client(1); run failover();
#ifdef LIVENESS
		run idle()
#endif
	}
}

/* Every client is told of its job in the end. */
#ifdef LIVENESS
ltl ends { <>[] (told[0] != NONE && told[1] != NONE) }
#endif
