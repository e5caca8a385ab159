package store

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// batch is submissions that are stored together. Those with the same key are
// stored once.
type batch struct {
	entries []entry
	// first maps a key that several submissions have to the index of the first of them.
	first map[key]int
	// distinct are the indexes of submissions with different keys, in the order of their
	// keys: the order in which locks are taken.
	distinct []int
}

func newBatch(submissions []job.Submission) batch {
	b := batch{
		entries: make([]entry, len(submissions)), first: make(map[key]int), distinct: make([]int, len(submissions)),
	}
	for i := range submissions {
		b.entries[i], b.distinct[i] = newEntry(&submissions[i]), i
	}
	slices.SortFunc(b.distinct, func(i, j int) int { return cmp.Or(b.entries[i].key.compare(b.entries[j].key), cmp.Compare(i, j)) })
	distinct := b.distinct[:0]
	for _, i := range b.distinct {
		if n := len(distinct); n > 0 && b.entries[distinct[n-1]].key == b.entries[i].key {
			b.first[b.entries[i].key] = distinct[n-1]
			continue
		}
		distinct = append(distinct, i)
	}
	b.distinct = distinct
	return b
}

// firstOf is the index of the first submission with the same key as the one at i, which may be i.
func (b batch) firstOf(i int) int {
	if first, shared := b.first[b.entries[i].key]; shared {
		return first
	}
	return i
}

// mostInOneGo is how many jobs can be sent in one go. The connection encodes all of them before
// it sends one.
const mostInOneGo = 4 * insertRows

// inOneGo says that the distinct submissions can be sent in one go: nothing depends on what
// became of others, and they are not many.
func (b batch) inOneGo() bool {
	size := 0
	for _, i := range b.distinct {
		if !b.entries[i].plain() {
			return false
		}
		size += len(b.entries[i].Payload)
	}
	return len(b.distinct) <= mostInOneGo && size <= insertBytes
}

// take records the results of the distinct submissions that are stored, and removes
// these from the batch.
func (b *batch) take(stored map[job.ID]submittedRow, results []job.Submitted) {
	b.distinct = slices.DeleteFunc(b.distinct, func(i int) bool {
		row, ok := stored[b.entries[i].ID]
		if ok {
			results[i] = row.result(b.entries[i])
		}
		return ok
	})
}

// repeat copies the result of the first submission with a key to the others with that
// key.
func (b batch) repeat(results []job.Submitted) {
	for i, e := range b.entries {
		if first := b.firstOf(i); first != i {
			results[i] = results[first]
			results[i].Receipt.Replayed = true
			if results[first].Err == nil && !bytes.Equal(e.hash, b.entries[first].hash) {
				results[i] = job.Submitted{Err: job.ErrKeyReused}
			}
		}
	}
}

// entry is a submission and what identifies it. Entries are copied often, and submissions
// are large: hence the pointer.
type entry struct {
	*job.Submission
	key  key
	hash []byte
}

// gated reports whether the entry needs more than submit.sql does.
func (e entry) gated() bool {
	return len(e.Gates) > 0 || e.Terms != job.Terms{} || !e.ExpiresAt.IsZero() || e.TTL != 0 || e.Unique != nil ||
		e.Parent != job.ID{} || e.ResubmissionOf != job.ID{} || e.Followed || e.CallbackURL != ""
}

// plain says that the entry can neither be kept out nor be found by a key: it is stored as it was
// given.
func (e entry) plain() bool { return e.IdempotencyKey == "" && !e.gated() }

func newEntry(s *job.Submission) entry {
	return entry{Submission: s, key: newKey(s.Tenant, s.IdempotencyKey, s.ID), hash: requestHash(s)}
}

// key identifies a job before it exists: by tenant and idempotency key, or by
// its id if it has no key.
type key struct {
	tenant, idempotency string
	id                  job.ID
}

func newKey(tenant, idempotency string, id job.ID) key {
	if idempotency == "" {
		return key{id: id}
	}
	return key{tenant: tenant, idempotency: idempotency}
}

func (k key) compare(other key) int {
	return cmp.Or(
		cmp.Compare(k.tenant, other.tenant),
		cmp.Compare(k.idempotency, other.idempotency),
		bytes.Compare(k.id[:], other.id[:]),
	)
}

// sameRequest compares the hash of a stored job with that of a request that has its key. An
// erased job has none: it stands for every request.
func sameRequest(stored, hash []byte) bool { return len(stored) == 0 || bytes.Equal(stored, hash) }

// requestHash is the hash of the parts that must be equal in two requests with the
// same key: the type, and what was asked without insignificant white space. It is empty
// without a key.
func requestHash(s *job.Submission) []byte {
	if s.IdempotencyKey == "" {
		return []byte{}
	}
	asked := s.Asked
	if asked == nil {
		asked = s.Payload
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, asked); err != nil {
		compact.Reset() // not JSON: the database will refuse it
		compact.Write(asked)
	}
	hash := sha256.New()
	hash.Write([]byte(s.Type))
	hash.Write([]byte{0})
	hash.Write(compact.Bytes())
	return hash.Sum(nil)
}

// Limits of one insertion: rows, and bytes of payload. A single payload may be larger.
// While a statement runs, its parameters are in memory several times: as text, as an
// array, and in the connection's buffer.
const (
	insertRows  = 500
	insertBytes = 4 << 20
)

// insertions divides the entries at the indexes into statements.
func insertions(entries []entry, indexes []int) iter.Seq[insertion] {
	return func(yield func(insertion) bool) {
		for len(indexes) > 0 {
			n, size := 0, 0
			for n < min(len(indexes), insertRows) && (n == 0 || size+len(entries[indexes[n]].Payload) <= insertBytes) {
				size += len(entries[indexes[n]].Payload)
				n++
			}
			if !yield(newInsertion(entries, indexes[:n])) {
				return
			}
			indexes = indexes[n:]
		}
	}
}

// insertion stores entries by one statement.
type insertion struct {
	indexes []int // in the batch
	entries []entry
	keyed   bool // some have an idempotency key
	gated   bool // some need more than submit.sql does
}

func newInsertion(entries []entry, indexes []int) insertion {
	in := insertion{indexes: slices.Clone(indexes), entries: make([]entry, len(indexes))}
	for i, index := range indexes {
		in.entries[i] = entries[index]
	}
	in.gated = slices.ContainsFunc(in.entries, entry.gated)
	in.keyed = slices.ContainsFunc(in.entries, func(e entry) bool { return e.IdempotencyKey != "" })
	return in
}

// plain says that all entries are.
func (in insertion) plain() bool { return !in.keyed && !in.gated }

func (in insertion) statement() string {
	switch {
	case in.gated:
		return "submit_gated"
	case in.keyed:
		return "submit"
	}
	return "submit_unkeyed"
}

func (in insertion) columns() []any {
	columns := []any{
		postgres.Column(in.entries, func(e entry) pgtype.UUID { return postgres.UUID(e.ID) }),
		postgres.Column(in.entries, func(e entry) string { return e.Tenant }),
		postgres.Column(in.entries, func(e entry) string { return e.Type }),
		postgres.Column(in.entries, func(e entry) []byte { return e.hash }),
		postgres.Column(in.entries, func(e entry) string { return string(e.Payload) }),
		postgres.Column(in.entries, func(e entry) int16 { return e.Priority }),
		postgres.Column(in.entries, func(e entry) pgtype.Timestamptz { return postgres.Instant(e.RunAt) }),
		postgres.Column(in.entries, func(e entry) pgtype.Interval { return postgres.Interval(e.Delay) }),
		postgres.Column(in.entries, func(e entry) bool { return e.Hold }),
		postgres.Column(in.entries, func(e entry) int32 { return int32(e.MaxAttempts) }),
		postgres.Column(in.entries, func(e entry) pgtype.Interval { return postgres.Interval(e.Timeout) }),
		postgres.Column(in.entries, func(e entry) pgtype.Text { return jsonArray(e.Tags) }),
		postgres.Column(in.entries, func(e entry) string { return e.Trace.Parent }),
		postgres.Column(in.entries, func(e entry) string { return traceState(e.Trace) }),
	}
	if !in.plain() {
		columns = append(columns, postgres.Column(in.entries, func(e entry) pgtype.Text { return postgres.Text(e.IdempotencyKey) }))
	}
	if in.gated {
		columns = append(columns,
			postgres.Column(in.entries, func(e entry) pgtype.Text { return jsonArray(e.Gates) }),
			postgres.Column(in.entries, func(e entry) pgtype.Text { return terms(e.Terms) }),
			postgres.Column(in.entries, func(e entry) pgtype.Timestamptz { return postgres.Instant(e.ExpiresAt) }),
			postgres.Column(in.entries, func(e entry) pgtype.Interval {
				return pgtype.Interval{Microseconds: e.TTL.Microseconds(), Valid: e.TTL != 0}
			}),
			postgres.Column(in.entries, func(e entry) []byte { return digest(e.Unique) }),
			postgres.Column(in.entries, func(e entry) pgtype.UUID { return optionalID(e.Parent) }),
			postgres.Column(in.entries, func(e entry) bool { return e.Followed }),
			postgres.Column(in.entries, func(e entry) pgtype.Text { return postgres.Text(e.CallbackURL) }),
			postgres.Column(in.entries, func(e entry) pgtype.UUID { return optionalID(e.ResubmissionOf) }))
	}
	return columns
}

// stored reads the rows that the statement returned, by key. submit_unkeyed returns
// little: all entries are stored, and as they were given.
func (in insertion) stored(rows pgx.Rows) (map[key]submittedRow, error) {
	stored := make(map[key]submittedRow, len(in.entries))
	if !in.plain() {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[submittedRow])
		for _, row := range found {
			stored[newKey(row.Tenant, row.IdempotencyKey, row.JobID)] = row
		}
		return stored, err
	}
	receipts, err := in.accepted(rows)
	for i, r := range receipts {
		e := in.entries[i]
		stored[e.key] = submittedRow{
			JobID: r.ID, Tenant: e.Tenant, JobType: r.Type, RequestHash: e.hash, State: r.State,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Fresh: true,
		}
	}
	return stored, err
}

// accepted reads the row that submit_unkeyed returned, and returns a receipt for each entry.
func (in insertion) accepted(rows pgx.Rows) ([]job.Receipt, error) {
	all, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[unkeyedRow])
	if err != nil {
		return nil, err
	}
	waiting := make(map[job.ID]bool, len(all.Waiting))
	for _, id := range all.Waiting {
		waiting[id] = true
	}
	receipts := make([]job.Receipt, len(in.entries))
	for i, e := range in.entries {
		receipts[i] = job.Receipt{ID: e.ID, Type: e.Type, State: job.Queued, CreatedAt: all.CreatedAt, UpdatedAt: all.CreatedAt}
		if waiting[e.ID] {
			receipts[i].State = job.Created
		}
	}
	return receipts, nil
}

// unkeyedRow is what submit_unkeyed.sql returns for all jobs together.
type unkeyedRow struct {
	CreatedAt time.Time
	Waiting   [][16]byte // the jobs that are not due yet
}

// submittedRow is one job that a submission created or found.
type submittedRow struct {
	JobID          job.ID
	Tenant         string
	IdempotencyKey string
	JobType        string
	RequestHash    []byte
	State          job.State
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Fresh          bool
	// duplicate says that the job kept the submission out.
	duplicate bool
}

func (r submittedRow) result(e entry) job.Submitted {
	if !sameRequest(r.RequestHash, e.hash) {
		return job.Submitted{Err: job.ErrKeyReused}
	}
	return job.Submitted{Receipt: job.Receipt{
		ID: r.JobID, Type: r.JobType, State: r.State,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Replayed: !r.Fresh && !r.duplicate && r.JobID != e.ID, Duplicate: r.duplicate,
	}}
}

// jsonArray is how lists of several jobs are sent, because an array of arrays would have
// to be rectangular. It is null for an empty list.
func jsonArray[S ~string](list []S) pgtype.Text {
	if len(list) == 0 {
		return pgtype.Text{}
	}
	return document(list)
}

// optionalID is null for the zero id.
func optionalID(id job.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != job.ID{}} }

// terms are null if they ask for nothing.
func terms(t job.Terms) pgtype.Text {
	if t == (job.Terms{}) {
		return pgtype.Text{}
	}
	return document(t)
}

func document(value any) pgtype.Text {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic("store: " + err.Error()) // strings and numbers always marshal
	}
	return postgres.Document(encoded)
}
