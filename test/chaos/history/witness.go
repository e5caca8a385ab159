package history

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Tables lists the tables whose rows are witnessed: whatever says in which state a job is, and the
// workers, whose rows say how long their kept leases last.
func Tables() []string {
	return []string{"jobs", "leases", "ready", "parked", "timers", "dead_letters", "unique_keys", "unsuccessful_attempts", "workers"}
}

// Op says what a line of the witness is.
type Op string

// The lines of the witness. The lines of a generation are in the order of their
// commits, and those of a transaction in the order in which it wrote.
const (
	Insert Op = "insert"
	Update Op = "update"
	Delete Op = "delete"
	// Snapshot is a row that was there when the witness of a generation began, in
	// Row. All snapshot lines come first in their generation. There are none before
	// the first job.
	Snapshot Op = "snapshot"
	// Promoted is the first line of each generation but the first. Its LSN is where the
	// new primary's timeline begins: commits of the generation before with a higher LSN were
	// never on the new primary.
	Promoted Op = "promoted"
)

// Change is a line of the witness. Nothing is missing between the snapshot of a generation
// and its end, but what happened between the last line of a generation and the snapshot of
// the next may be. A transaction that is written twice, because a server decoded it again
// after a restart, counts once.
type Change struct {
	// Generation counts primaries, from 0.
	Generation int `json:"generation"`
	Op         Op  `json:"op"`
	// LSN is the end of the transaction's commit record, XID its id, and Committed
	// the time in the commit record, by the database's clock.
	LSN       LSN    `json:"lsn"`
	XID       uint32 `json:"xid,omitempty"`
	Committed Nanos  `json:"committed,omitempty"`
	Table     string `json:"table,omitempty"`
	// Row is the row after the change; absent for Delete.
	Row Row `json:"row,omitempty"`
	// Old is the row before an Update or a Delete. A Delete has at least the
	// columns of the primary key, an Update may have none.
	Old Row `json:"old,omitempty"`
	// Orphaned says that only the old primary has seen the change. The reader sets it,
	// from the next generation's Promoted; writers leave it out.
	Orphaned bool `json:"-"`
}

// Row is a row as PostgreSQL writes its values as text, in UTC. Columns that are null are absent. Columns
// that nobody judges may be left out: large ones (payload, checkpoint, stack), and most of workers.
type Row map[string]string

// FinalRow is a line of final.jsonl.
type FinalRow struct {
	Table string `json:"table"`
	Row   Row    `json:"row"`
}

// Int is the column as a number; 0 if it is null.
func (r Row) Int(column string) (int64, error) {
	text, ok := r[column]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("column %s: %w", column, err)
	}
	return n, nil
}

// Infinity is later than every time of a run: PostgreSQL's timestamp infinity.
const Infinity Nanos = 1<<63 - 1

// Time is the column as a time; 0 if it is null. It reads what PostgreSQL writes as
// text (DateStyle ISO) and as JSON.
func (r Row) Time(column string) (Nanos, error) {
	text, ok := r[column]
	switch {
	case !ok:
		return 0, nil
	case text == "infinity":
		return Infinity, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999-07:00", time.RFC3339Nano} {
		if at, err := time.Parse(layout, text); err == nil {
			return Nanos(at.UnixNano()), nil
		}
	}
	return 0, fmt.Errorf("column %s: %q is not a time", column, text)
}

// Mark is the mark of the submission that made the job, from the column tags of a row
// of the ledger; empty for none.
func (r Row) Mark() string { return r.tagged(markPrefix) }

// Fence is the fence of the attempt that submitted the job; empty if its row does not say.
func (r Row) Fence() string { return r.tagged(fencePrefix) }

// tagged is what follows the prefix in the first tag that has it.
func (r Row) tagged(prefix string) string {
	for tag := range strings.SplitSeq(strings.Trim(r["tags"], "{}[]"), ",") {
		if rest, ok := strings.CutPrefix(strings.Trim(strings.TrimSpace(tag), `"`), prefix); ok {
			return rest
		}
	}
	return ""
}

// LSN is a position in the log of a server.
type LSN uint64

// ParseLSN reads PostgreSQL's notation, such as 16/B374D848.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is not an LSN", text)
	}
	return LSN(h<<32 | l), nil
}

func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }

// MarshalText writes PostgreSQL's notation.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads PostgreSQL's notation.
func (l *LSN) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLSN(string(text))
	return err
}
