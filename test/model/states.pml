/* The states of package job, and what each can become. Written by go test ./test/model -update. */

#define CREATED 0
#define QUEUED 1
#define RUNNING 2
#define RETRY 3
#define SUCCEEDED 4
#define DEAD 5
#define CANCELED 6

#define FINAL(s) ((s) == SUCCEEDED || (s) == DEAD || (s) == CANCELED)

#define LEGAL(from, to) ( \
	(from) == CREATED && (to) == QUEUED || \
	(from) == CREATED && (to) == CANCELED || \
	(from) == QUEUED && (to) == CREATED || \
	(from) == QUEUED && (to) == RUNNING || \
	(from) == QUEUED && (to) == RETRY || \
	(from) == QUEUED && (to) == CANCELED || \
	(from) == RUNNING && (to) == QUEUED || \
	(from) == RUNNING && (to) == RETRY || \
	(from) == RUNNING && (to) == SUCCEEDED || \
	(from) == RUNNING && (to) == DEAD || \
	(from) == RUNNING && (to) == CANCELED || \
	(from) == RETRY && (to) == QUEUED || \
	(from) == RETRY && (to) == DEAD || \
	(from) == RETRY && (to) == CANCELED || \
	(from) == DEAD && (to) == QUEUED)
