package capacity

// Pages of the documentation that have the figures.
const (
	ownPage     = "docs/how-to/capacity.md"
	performance = "docs/explanation/performance.md"
	postgresql  = "docs/how-to/postgresql.md"
	scale       = "docs/how-to/scale.md"
	retention   = "docs/adr/0017-retention.md"
)

// point is what a job with such a payload takes. The test of this package measures it.
type point struct {
	payload int64
	// disk and wal are bytes, as in Estimate.
	disk, wal float64
	// time is the processor time of PostgreSQL, relative to a job without a payload.
	time float64
}

// A tuple of more than 2 kB moves its payload out of line, where it is written once; a smaller
// one is written whole again at the end of the job, in a page that keeps half of its space
// free for that. So jobs with 1 kB take more space than jobs with 2 kB.
var points = []point{
	{2, 631, 1_196, 1},
	{100, 819, 1_285, 1.1},
	{500, 1_710, 1_725, 1.2},
	{1_000, 4_169, 2_273, 1.4},
	{2_000, 3_449, 3_627, 1.8},
	{4_000, 6_202, 5_767, 2.4},
	{8_000, 9_039, 10_053, 3},
	{32_000, 33_936, 36_061, 7.8},
}

var (
	// databaseTime and programTime are microseconds of processors for a job with an empty
	// payload and a handler that does nothing.
	databaseTime = Range{Batches: 70.4, Single: 132}
	programTime  = Range{Batches: 34.0, Single: 160}
)

const (
	// deletedWAL and deletedTime are bytes and microseconds, vacuum included, for a job that
	// retention deletes.
	deletedWAL  = 113
	deletedTime = 2.8 + 1.7
	// wholePages is the ratio of the log with a checkpoint just before to that without one,
	// for 300,000 jobs: 1,033 to 680 bytes a job.
	wholePages = 1.5
	// logSpace is max_wal_size as recommended.
	logSpace = 4 << 30
	// vacuumRoom is the share by which the ledger grew while its past was deleted: from 9,371
	// to 11,192 MB.
	vacuumRoom = 0.2
	// besidePools are two connections for heartbeats, one that listens, and one while an
	// orchestrator starts. It has 20 in pools, and at least three.
	besidePools             = 2 + 1 + 1
	orchestratorConnections = 20 + besidePools
	leastPool               = 3
	// MaxConnections is that of the embedded server, and of PostgreSQL by default.
	MaxConnections = 100
	// reservedConnections are those that PostgreSQL keeps for superusers.
	reservedConnections = 3
	// poolerFrom is from how many orchestrators on they should share connections, which are
	// pooled, through PgBouncer.
	poolerFrom = 10
	pooled     = 40
	// MeasuredRate is jobs a second, submitted in batches and worked at the same time, of
	// which two processors did all the work.
	MeasuredRate = 17_559
	// MaxTable is how many bytes a table of PostgreSQL may have, with pages of 8 kB
	// (https://www.postgresql.org/docs/current/limits.html).
	MaxTable = 32 << 40
)

// Figure is a number that an estimate rests on.
type Figure struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// quote is how the source has it.
	quote string
}

// Figures are all of them.
var Figures = []Figure{
	{"PostgreSQL, CPU of a job in batches", "70.4 µs", performance, "| Holdfast | 17,559 | 15,837 – 20,608 | – | 104 | 34.0 | 70.4 |"},
	{"orchestrator and handlers, CPU of a job in batches", "34 µs", performance, "| Holdfast | 17,559 | 15,837 – 20,608 | – | 104 | 34.0 | 70.4 |"},
	{"PostgreSQL, CPU of a job a call", "132 µs", performance, "| Holdfast | 5,311 | 4,302 – 5,560 | – | 293 | 160 | 132 |"},
	{"orchestrator and handlers, CPU of a job a call", "160 µs", performance, "| Holdfast | 5,311 | 4,302 – 5,560 | – | 293 | 160 | 132 |"},
	{"bytes on disk, bytes of WAL and more CPU, by payload", "a table", ownPage, "| 2,000 |"},
	{"deletion of a job", "4.5 µs, 113 bytes of WAL", retention, "2.8 µs of CPU and 113 bytes of WAL, and 1.7 µs of vacuum"},
	{"WAL with whole pages", "1.5 ×", postgresql, "| `max_wal_size` 2 GB | 1,033 |"},
	{"space for WAL", "4 GB", postgresql, "| `max_wal_size` | 4 GB or more"},
	{"growth while jobs are deleted", "20 %", "docs/how-to/retention.md", "9,371 MB full, 11,192 MB when the last old job was gone"},
	{"connections of an orchestrator", "24", postgresql, "`database.max_connections` (20) connections, plus two for heartbeats, one that listens, and one more\nwhile it starts"},
}
