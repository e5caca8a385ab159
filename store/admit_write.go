package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// write writes what was decided, and commits.
func (r *round) write(ctx context.Context) error {
	d := r.decided
	batch := &pgx.Batch{}
	if len(d.admitted) > 0 {
		batch.Queue(sql.Text("admit"), ids(d.admitted), positions(d.admitted), turnColumn(d.admitted))
	}
	if len(d.moved) > 0 {
		lanes := postgres.Column(d.moved, func(j head) string { return string(j.lane) })
		batch.Queue(sql.Text("move_parked"), ids(d.moved), lanes, positions(d.moved), turnColumn(d.moved))
	}
	r.queueSlots(batch)
	r.queueTracked(batch)
	r.queueTimes(batch)
	canceled := r.queueCancels(batch)
	if len(d.rewake) > 0 {
		batch.Queue(sql.Text("rewake"), d.rewake)
	}
	batch.Queue("commit")
	if err := r.send(ctx, batch); err != nil {
		return err
	}
	r.report(canceled)
	return nil
}

func ids(jobs []head) any {
	return postgres.Column(jobs, func(j head) pgtype.UUID { return postgres.UUID(j.id) })
}

func positions(jobs []head) any {
	return postgres.Column(jobs, func(j head) pgtype.Timestamptz { return postgres.Instant(j.position) })
}

// turnColumn is null for no turn.
func turnColumn(jobs []head) any {
	return postgres.Column(jobs, func(j head) pgtype.Bool { return pgtype.Bool{Bool: true, Valid: j.turn} })
}

// queueSlots writes the gates that have changed.
func (r *round) queueSlots(batch *pgx.Batch) {
	var added, changed []slotsRow
	var dropped []string
	for _, gate := range slices.Sorted(maps.Keys(r.decided.gates)) {
		g := r.decided.gates[gate]
		next := g.next()
		switch {
		case g.stored == nil && !next.empty():
			added = append(added, next)
		case g.stored == nil:
		case next.empty():
			dropped = append(dropped, next.Gate)
		case !next.same(g.stored):
			changed = append(changed, next)
		}
	}
	if len(added) > 0 {
		batch.Queue(sql.Text("add_slots"), slotsColumns(added)...)
	}
	if len(changed) > 0 {
		batch.Queue(sql.Text("change_slots"), slotsColumns(changed)...)
	}
	if len(dropped) > 0 {
		batch.Queue(sql.Text("drop_slots"), dropped)
	}
}

func slotsColumns(rows []slotsRow) []any {
	return []any{
		postgres.Column(rows, func(s slotsRow) string { return s.Gate }),
		postgres.Column(rows, func(s slotsRow) int32 { return s.Used }),
		postgres.Column(rows, func(s slotsRow) *float64 { return s.Tokens }),
		postgres.Column(rows, func(s slotsRow) *time.Time { return s.TokensAt }),
		postgres.Column(rows, func(s slotsRow) *time.Time { return s.WakeAt }),
	}
}

// queueTracked writes which admitted jobs a gate must know.
func (r *round) queueTracked(batch *pgx.Batch) {
	var charged []startRow
	for _, g := range r.decided.gates {
		charged = append(charged, g.charged...)
	}
	if len(charged) > 0 {
		batch.Queue(sql.Text("drop_admitted"),
			postgres.Column(charged, func(s startRow) string { return s.Gate }),
			postgres.Column(charged, func(s startRow) pgtype.UUID { return postgres.UUID(s.JobID) }))
	}
	tracked := r.decided.tracked
	if len(tracked) == 0 {
		return
	}
	forget := make(map[job.Gate]bool)
	for _, t := range tracked {
		if t.gate.Kind() == job.GateNew {
			forget[t.gate] = true
		}
	}
	if len(forget) > 0 {
		batch.Queue(sql.Text("forget_admitted"), slices.Sorted(maps.Keys(forget)))
	}
	batch.Queue(sql.Text("add_admitted"),
		postgres.Column(tracked, func(t trackedJob) string { return string(t.gate) }),
		postgres.Column(tracked, func(t trackedJob) pgtype.UUID { return postgres.UUID(t.of.id) }),
		postgres.Column(tracked, func(t trackedJob) string { return t.of.queue.jobType }),
		postgres.Column(tracked, func(t trackedJob) int16 { return t.of.queue.urgency }),
		postgres.Column(tracked, func(t trackedJob) pgtype.Timestamptz { return postgres.Instant(t.of.position) }))
}

// queueTimes writes the turns of fairness keys, and the virtual times of queues.
func (r *round) queueTimes(batch *pgx.Batch) {
	type row struct {
		queue
		key           string
		start, finish time.Time
	}
	var rows []row
	queues := make(map[queue]*row)
	of := func(q queue) *row {
		if queues[q] == nil {
			queues[q] = &row{queue: q}
		}
		return queues[q]
	}
	for q, times := range r.decided.queues {
		of(q).start = times.start
		for _, gate := range slices.Sorted(maps.Keys(times.changed)) {
			rows = append(rows, row{queue: q, key: string(gate), finish: times.last[gate]})
		}
	}
	for _, j := range r.decided.admitted {
		if j.turn && j.position.After(of(j.queue).finish) {
			of(j.queue).finish = j.position
		}
	}
	for _, one := range queues {
		if one.finish.Before(one.start) {
			one.finish = one.start
		}
		rows = append(rows, *one)
	}
	if len(rows) == 0 {
		return
	}
	batch.Queue(sql.Text("save_turns"),
		postgres.Column(rows, func(r row) string { return r.jobType }),
		postgres.Column(rows, func(r row) int16 { return r.urgency }),
		postgres.Column(rows, func(r row) string { return r.key }),
		postgres.Column(rows, func(r row) pgtype.Timestamptz { return postgres.Instant(r.start) }),
		postgres.Column(rows, func(r row) pgtype.Timestamptz { return postgres.Instant(r.finish) }))
}

// victim is a job that had to make room for a newcomer.
type victim struct {
	JobID [16]byte
	Done  string
}

// queueCancels cancels newcomers, and jobs that make room for one.
func (r *round) queueCancels(batch *pgx.Batch) *[]victim {
	if canceled := r.decided.canceled; len(canceled) > 0 {
		batch.Queue(sql.Text("cancel_newcomers"),
			postgres.Column(canceled, func(c conflict) pgtype.UUID { return postgres.UUID(c.id) }),
			postgres.Column(canceled, func(c conflict) string { return c.reason }))
	}
	victims := new([]victim)
	if len(r.decided.oldest) > 0 {
		var jobs []int32
		var reasons []string
		gates := slices.Sorted(maps.Keys(r.decided.oldest))
		for _, gate := range gates {
			jobs = append(jobs, int32(r.decided.oldest[gate])) //nolint:gosec // at most as many as there are heads
			reasons = append(reasons, fmt.Sprintf("made room for a newer job: concurrency key %q was full, and its onConflict is %s",
				gate.Name(), job.ConflictCancelOldest))
		}
		postgres.QueueRows(batch, victims, "cancel_oldest", pgx.RowToStructByName[victim], gates, jobs, reasons)
	}
	return victims
}

// report says what the round did.
func (r *round) report(victims *[]victim) {
	d, done := r.decided, &r.done
	for j := range d.ready() {
		done.Admitted = append(done.Admitted, job.Admitted{ID: j.id, Type: j.queue.jobType, Lane: j.lane, Waited: d.now.Sub(j.parkedAt)})
	}
	done.Moved = len(d.moved)
	for _, c := range d.canceled {
		done.Canceled = append(done.Canceled, c.id)
	}
	for _, v := range *victims {
		if v.Done == canceledAtOnce {
			done.Canceled, done.More = append(done.Canceled, v.JobID), true
		} else {
			done.CancelAsked++
		}
	}
	done.More = done.More || len(d.rewake) > 0
	for _, g := range d.gates {
		if in := g.wakeAt.Sub(d.now); !g.wakeAt.IsZero() && (done.NextIn == 0 || in < done.NextIn) {
			done.NextIn = max(in, time.Millisecond)
		}
	}
}
