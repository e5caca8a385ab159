package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// previewSamples is how many jobs a preview shows, and previewDied of how many it looks up
	// the version under which they died.
	previewSamples = 5
	previewDied    = 1000
)

// operationRow is a job.Operation with what cannot be scanned into it.
type operationRow struct {
	ID           job.ID
	Action       job.Action
	Filter       string
	FrozenAt     time.Time
	Tenant       string
	Priority     *int16
	Rate         int
	Reason       string
	By           string
	StoppedBy    string
	State        job.OperationState
	Expected     int
	ExpectedMore bool
	Position     pgtype.UUID
	Found        int64
	Done         int64
	Skipped      string
	Failures     int
	LastError    string
	Hash         []byte
	StartedAt    time.Time
	UpdatedAt    time.Time
	FinishedAt   *time.Time
}

// operation fails if a later version has written the row: a filter that is not understood
// would select too much.
func (r operationRow) operation() (job.Operation, error) {
	o := job.Operation{
		ID: r.ID, Action: r.Action, Priority: r.Priority, Rate: r.Rate, Reason: r.Reason, By: r.By, StoppedBy: r.StoppedBy,
		State: r.State, Expected: job.Count{Jobs: r.Expected, More: r.ExpectedMore}, Found: r.Found, Done: r.Done,
		Failures: r.Failures, LastError: r.LastError, StartedAt: r.StartedAt, UpdatedAt: r.UpdatedAt, FinishedAt: r.FinishedAt,
	}
	strict := json.NewDecoder(bytes.NewReader([]byte(r.Filter)))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&o.Filter); err != nil {
		return o, fmt.Errorf("the filter of operation %s: %w", r.ID, err)
	}
	o.Filter.FrozenAt, o.Filter.After = r.FrozenAt, r.Position.Bytes
	if err := json.Unmarshal([]byte(r.Skipped), &o.Skipped); err != nil {
		return o, fmt.Errorf("what operation %s has skipped: %w", r.ID, err)
	}
	return o, nil
}

// PreviewOperation finds out what an operation would act on. The moment of the filter is now,
// unless it names an earlier one. With an After, it goes on with the count of an earlier preview
// only. The filter's Within bounds the count; the rest takes half as long at most.
func (s *Store) PreviewOperation(ctx context.Context, filter job.Filter) (preview job.Preview, err error) {
	now, err := postgres.Read(ctx, s.db.Lists, "clock", pgx.RowTo[time.Time])
	if err != nil {
		return job.Preview{}, err
	}
	if filter.FrozenAt.IsZero() || filter.FrozenAt.After(now[0]) {
		filter.FrozenAt = now[0]
	}
	preview.At = filter.FrozenAt
	if filter.After == (job.ID{}) {
		newest := filter
		newest.Within, newest.Limit = filter.Within/4, previewSamples
		samples, err := s.find(ctx, s.db.Lists, newest)
		if err != nil {
			return job.Preview{}, err
		}
		preview.Samples = samples.Jobs
		if preview.Died, err = s.diedOn(ctx, newest); err != nil {
			return job.Preview{}, err
		}
	}
	preview.Count.Jobs, preview.Next, err = s.count(ctx, s.db.Lists, filter, math.MaxInt32, math.MaxInt)
	preview.Count.More = preview.Next != job.ID{}
	return preview, err
}

// diedOn looks up under which versions the newest of the jobs died, if they are dead.
func (s *Store) diedOn(ctx context.Context, filter job.Filter) ([]job.DiedOn, error) {
	if !slices.Equal(filter.States, []job.State{job.Dead}) {
		return nil, nil
	}
	filter.Limit = previewDied
	page, err := s.list(ctx, s.db.Lists, filter)
	if err != nil {
		return nil, err
	}
	ids := postgres.Column(page.Jobs, func(v job.View) pgtype.UUID { return postgres.UUID(v.ID) })
	return postgres.Read(ctx, s.db.Lists, "died_on", pgx.RowToStructByName[job.DiedOn], ids)
}

// StartOperation begins an operation. The same id sent again makes one operation, and so does
// the same key: then it returns the one that was made before, or job.ErrKeyReused if that was
// another request.
func (s *Store) StartOperation(ctx context.Context, start job.OperationStart) (job.Operation, error) {
	frozen := start.Filter.FrozenAt
	start.Filter.FrozenAt, start.Filter.After, start.Filter.Limit = time.Time{}, job.ID{}, 0
	filter, err := json.Marshal(start.Filter)
	if err != nil {
		return job.Operation{}, err
	}
	audited := []byte("{}")
	if len(start.Shown) > 0 {
		audited, _ = json.Marshal(start.Shown) // Texts always marshal.
	}
	only := pgtype.UUID{Bytes: start.ID, Valid: start.Key == nil}
	found, err := postgres.Write(ctx, s.db.Submissions, "start operation", func(ctx context.Context, conn *pgx.Conn) (found []operationRow, err error) {
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("start_operation"), postgres.UUID(start.ID), start.Action, string(filter), frozen, start.Filter.Tenant,
			start.Priority, start.Rate, start.Reason, start.By, start.Key, start.Hash, start.Expected.Jobs, string(audited), start.Expected.More)
		postgres.QueueRows(batch, &found, "operations", pgx.RowToStructByName[operationRow], chosenOperations(only, anyTenant, 1, start.Key, start.By)...)
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return found, err
	})
	switch {
	case err != nil:
		return job.Operation{}, err
	case len(found) == 0 || !bytes.Equal(found[0].Hash, start.Hash):
		return job.Operation{}, fmt.Errorf("start operation: %w", job.ErrKeyReused)
	}
	return found[0].operation()
}

// Operations returns the operations that the filter selects, newest first.
func (s *Store) Operations(ctx context.Context, filter job.OperationFilter) ([]job.Operation, error) {
	only := pgtype.UUID{Bytes: filter.ID, Valid: filter.ID != job.ID{}}
	found, err := postgres.Read(ctx, s.listsOf(only.Valid), "operations", pgx.RowToStructByName[operationRow],
		chosenOperations(only, filter.Tenant, filter.Limit, nil, nobody)...)
	if err != nil {
		return nil, err
	}
	operations := make([]job.Operation, len(found))
	for i, row := range found {
		if operations[i], err = row.operation(); err != nil {
			return nil, err
		}
	}
	return operations, nil
}

// Operations are chosen without a restriction to a tenant, and without a key.
const anyTenant, nobody = "", ""

// chosenOperations are the arguments of operations.sql.
func chosenOperations(only pgtype.UUID, tenant string, limit int, key *string, by string) []any {
	return []any{only, tenant, limit, key, by}
}

// StopOperation stops an operation of the tenant, or of any if that is empty. When it returns,
// the operation acts on no more jobs. One that has ended stays as it is. If there is none, the
// error is job.ErrNoOperation.
func (s *Store) StopOperation(ctx context.Context, id job.ID, by, tenant string) (job.Operation, error) {
	found, err := postgres.Write(ctx, s.db.Submissions, "stop operation", func(ctx context.Context, conn *pgx.Conn) (found []operationRow, err error) {
		batch := &pgx.Batch{}
		batch.Queue(sql.Text("stop_operation"), postgres.UUID(id), by, tenant)
		postgres.QueueRows(batch, &found, "operations", pgx.RowToStructByName[operationRow], chosenOperations(postgres.UUID(id), tenant, 1, nil, nobody)...)
		postgres.QueueBarrier(batch)
		err = conn.SendBatch(ctx, batch).Close()
		return found, err
	})
	switch {
	case err != nil:
		return job.Operation{}, err
	case len(found) == 0:
		return job.Operation{}, fmt.Errorf("stop operation: %w", job.ErrNoOperation)
	}
	return found[0].operation()
}

// OperationDue returns how long until an operation is due, if there is one.
func (s *Store) OperationDue(ctx context.Context) (in time.Duration, ok bool, err error) {
	found, err := postgres.Read(ctx, s.db.Worker, "operation_due", pgx.RowTo[pgtype.Interval])
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return postgres.Duration(found[0]), true, nil
}

// PostponeOperation puts an operation off whose portion has failed, and reports whether it has
// failed for good, because this was the last of so many failures.
func (s *Store) PostponeOperation(ctx context.Context, id job.ID, why string, failures int) (failed bool, err error) {
	found, err := postgres.Change(ctx, s.db.Worker, "postpone_operation", pgx.RowTo[bool], postgres.UUID(id), why, failures)
	return len(found) > 0 && found[0], err
}

// ForgetOperations deletes operations that have ended longer ago.
func (s *Store) ForgetOperations(ctx context.Context, ago time.Duration) error {
	return s.db.Worker.Do(ctx, "forget_operations", postgres.Interval(ago))
}
