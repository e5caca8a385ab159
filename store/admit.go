package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const (
	// drainRows and drainGates bound what a round takes from its inbox.
	drainRows  = 256
	drainGates = 1000
)

// Admit does one round of admission: it takes what has happened at gates from the inbox,
// and lets jobs pass as the rules allow. Any number of processes may call it; they wait
// for one another. A round is one transaction: after an error, another one does the same.
func (s *Store) Admit(ctx context.Context, rules *job.Rules) (job.Admission, error) {
	done, err := postgres.Write(ctx, s.db.Worker, "admit", func(ctx context.Context, conn *pgx.Conn) (*round, error) {
		r := &round{conn: conn, rules: rules}
		err := r.run(ctx)
		if conn.PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(ctx, "rollback") // if it fails, the connection is closed
		}
		return r, err
	})
	if err != nil {
		return job.Admission{}, err
	}
	for j := range done.decided.ready() {
		s.marks.admitted(j.queue.jobType, j.queue.urgency, position{runAt: j.position, id: j.id})
	}
	return done.done, nil
}

// WakeLanes lets the next rounds look at every lane, and returns how many there are. It is
// for rules that have changed.
func (s *Store) WakeLanes(ctx context.Context) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "wake_lanes")
}

// ParkReady takes up to limit jobs of each of the paused types off the ready list that have
// passed gates, and returns how many. They wait for the end of the pause, and their slots are
// free meanwhile. It does not see jobs that are being claimed or changed.
func (s *Store) ParkReady(ctx context.Context, types []string, limit int) (int, error) {
	return postgres.ChangeOne[int](ctx, s.db.Worker, "park_ready", types, limit)
}

// round is one round of admission, in a transaction.
type round struct {
	conn    *pgx.Conn
	rules   *job.Rules
	decided *admission
	done    job.Admission
}

func (r *round) run(ctx context.Context) error {
	touched, err := r.begin(ctx)
	if err != nil {
		return err
	}
	if len(touched) > 0 {
		heads, err := r.heads(ctx, touched)
		if err != nil {
			return err
		}
		if err := r.complete(ctx, heads); err != nil {
			return err
		}
		r.decided.decide(heads)
	}
	return r.write(ctx)
}

func (r *round) send(ctx context.Context, batch *pgx.Batch) error {
	conn := r.conn
	return conn.SendBatch(ctx, batch).Close()
}

type slotsRow struct {
	Gate     string
	Used     int32
	Tokens   *float64
	TokensAt *time.Time
	WakeAt   *time.Time
}

type touchedRow struct {
	slotsRow
	At     time.Time
	More   bool
	Next   *time.Time
	Freed  int32
	Stored bool
}

// begin begins the transaction, empties the inbox, and returns the gates to look at.
func (r *round) begin(ctx context.Context) ([]touchedRow, error) {
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue(sql.Text("lock_admission"))
	var touched []touchedRow
	postgres.QueueRows(batch, &touched, "drain_wakes", pgx.RowToStructByName[touchedRow], drainRows, drainGates)
	if err := r.send(ctx, batch); err != nil {
		return nil, err
	}
	first := touched[0]
	r.decided = newAdmission(first.At, r.rules)
	if first.Next != nil {
		r.done.NextIn = first.Next.Sub(first.At)
	}
	if first.Gate == "" {
		return nil, nil
	}
	r.done.More = first.More || len(touched) >= drainGates
	return touched, nil
}

// heads returns the first jobs of the lanes that have room. Those of most lanes have no
// other gate: they are admitted at once, and not returned.
func (r *round) heads(ctx context.Context, touched []touchedRow) ([]head, error) {
	starts, err := r.starts(ctx, touched)
	if err != nil {
		return nil, err
	}
	var lanes []job.Gate
	var rooms []pgtype.Int4
	var used []int32
	var plain []bool
	most := max(roundJobs/len(touched), minLaneJobs)
	r.decided.oneKind = !slices.ContainsFunc(touched, func(t touchedRow) bool {
		return job.Gate(t.Gate).Kind() != job.Gate(touched[0].Gate).Kind()
	})
	slices.SortFunc(touched, func(a, b touchedRow) int { return strings.Compare(a.Gate, b.Gate) }) // the order of locks
	for i := range touched {
		gate := job.Gate(touched[i].Gate)
		if gate.Counts() {
			var stored *slotsRow
			if touched[i].Stored {
				stored = &touched[i].slotsRow
			}
			r.decided.know(gate, stored, starts[gate]).touch(r.decided.now, int(touched[i].Freed))
		}
		room, known := r.decided.room(gate, most)
		if known && room == 0 {
			continue
		}
		lanes, rooms = append(lanes, gate), append(rooms, pgtype.Int4{Int32: int32(room), Valid: known}) //nolint:gosec // at most roundJobs
		used, plain = append(used, r.decided.used(gate)), append(plain, r.decided.plain(gate))
	}
	if len(lanes) == 0 {
		return nil, nil
	}
	batch := &pgx.Batch{}
	var heads []head
	batch.Queue(sql.Text("heads"), lanes, postgres.Pointers[pgtype.Int4](rooms), used, most, plain).Query(func(rows pgx.Rows) error {
		var row headRow
		_, err := pgx.ForEachRow(rows, targets(rows, row.columns()), func() error {
			if j := row.head(); r.decided.read(j, int(row.room), row.admitted) {
				heads = append(heads, j)
			}
			return nil
		})
		return err
	})
	if err := r.send(ctx, batch); err != nil {
		return nil, err
	}
	return heads, nil
}

// starts returns which jobs the gates with a rate have admitted, by gate.
func (r *round) starts(ctx context.Context, touched []touchedRow) (map[job.Gate][]startRow, error) {
	var rated []job.Gate
	for i := range touched {
		if gate := job.Gate(touched[i].Gate); r.rated(gate) {
			rated = append(rated, gate)
		}
	}
	if len(rated) == 0 {
		return nil, nil
	}
	batch := &pgx.Batch{}
	var rows []startRow
	queueStarts(batch, &rows, rated)
	if err := r.send(ctx, batch); err != nil {
		return nil, err
	}
	return startsByGate(rows), nil
}

func (r *round) rated(gate job.Gate) bool {
	limit, found := r.rules.Limit(gate)
	return found && limit.Rate != nil
}

func queueStarts(batch *pgx.Batch, rows *[]startRow, gates []job.Gate) {
	postgres.QueueRows(batch, rows, "admitted", pgx.RowToStructByName[startRow], gates)
}

// startRow is a job that a gate with a rate has admitted.
type startRow struct {
	Gate      string
	JobID     [16]byte
	Waits     bool
	StartedAt *time.Time
}

// start orders the rows.
func (s *startRow) start() time.Time {
	if s.StartedAt == nil {
		return time.Time{}
	}
	return *s.StartedAt
}

func startsByGate(rows []startRow) map[job.Gate][]startRow {
	starts := make(map[job.Gate][]startRow)
	for _, row := range rows {
		starts[job.Gate(row.Gate)] = append(starts[job.Gate(row.Gate)], row)
	}
	return starts
}

// headRow is one head; of one that was admitted, turn, tenant, gates and onConflict are
// null.
type headRow struct {
	jobID              pgtype.UUID
	lane, jobType      string
	urgency            int16
	position, parkedAt pgtype.Timestamptz
	room               int32
	admitted           bool
	turn               pgtype.Bool
	tenant, onConflict pgtype.Text
	gates              []string
	capacity           pgtype.Int4
}

// columns says where each column of the statement goes.
func (r *headRow) columns() map[string]any {
	return map[string]any{
		"job_id": &r.jobID, "lane": &r.lane, "job_type": &r.jobType, "urgency": &r.urgency, "position": &r.position, "parked_at": &r.parkedAt,
		"room": &r.room, "admitted": &r.admitted, "turn": &r.turn, "tenant": &r.tenant, "on_conflict": &r.onConflict, "gates": &r.gates,
		"capacity": &r.capacity,
	}
}

func (r *headRow) head() head {
	return head{
		id: r.jobID.Bytes, queue: queue{r.jobType, r.urgency}, lane: job.Gate(r.lane), position: r.position.Time, turn: r.turn.Bool,
		tenant: r.tenant.String, gates: gates(r.gates), capacity: int(r.capacity.Int32), onConflict: job.OnConflict(r.onConflict.String),
		parkedAt: r.parkedAt.Time,
	}
}

type virtualTimeRow struct {
	Start, Finish, RunAt *time.Time
}

type turnRow struct {
	JobType string
	Urgency int16
	Key     string
	Finish  time.Time
}

// complete reads what else the decision depends on: gates that nothing has happened at,
// the turns of fairness keys, and which jobs are newcomers.
func (r *round) complete(ctx context.Context, heads []head) error {
	unknown, turns := make(map[job.Gate]bool), make(map[queue]map[job.Gate]bool)
	var conflicting []int // heads
	for i := range heads {
		for _, gate := range heads[i].gates {
			if gate.Counts() && r.decided.gates[gate] == nil {
				unknown[gate] = true
			}
		}
		if _, conflicts := heads[i].nextGate(job.GateNew); conflicts {
			conflicting = append(conflicting, i)
		}
		if gate, fair := heads[i].nextGate(job.GateFair); fair {
			if turns[heads[i].queue] == nil {
				turns[heads[i].queue] = make(map[job.Gate]bool)
			}
			turns[heads[i].queue][gate] = true
		}
	}
	batch := &pgx.Batch{}
	var known []slotsRow
	var starts []startRow
	var newcomers [][16]byte
	if len(unknown) > 0 {
		gates := slices.Sorted(maps.Keys(unknown))
		postgres.QueueRows(batch, &known, "slots_of", pgx.RowToStructByName[slotsRow], gates)
		if rated := slices.DeleteFunc(slices.Clone(gates), func(g job.Gate) bool { return !r.rated(g) }); len(rated) > 0 {
			queueStarts(batch, &starts, rated)
		}
	}
	if len(conflicting) > 0 {
		ids := postgres.Column(conflicting, func(i int) pgtype.UUID { return postgres.UUID(heads[i].id) })
		postgres.QueueRows(batch, &newcomers, "newcomers", pgx.RowTo[[16]byte], ids)
	}
	read := &turnsRead{}
	if len(turns) > 0 {
		read = queueTurns(batch, turns)
	}
	if batch.Len() > 0 {
		if err := r.send(ctx, batch); err != nil {
			return err
		}
	}
	read.learn(r.decided)
	started := startsByGate(starts)
	for i := range known {
		gate := job.Gate(known[i].Gate)
		r.decided.know(gate, &known[i], started[gate])
		delete(unknown, gate)
	}
	for gate := range unknown {
		r.decided.know(gate, nil, started[gate])
	}
	for _, i := range conflicting {
		heads[i].newcomer = slices.Contains(newcomers, [16]byte(heads[i].id))
	}
	return nil
}

// turnsRead are the answers about turns.
type turnsRead struct {
	queues []queue
	times  []virtualTimeRow // one for each queue
	turns  []turnRow
}

// queueTurns reads the virtual times of the queues and the last turns of the keys.
func queueTurns(batch *pgx.Batch, keys map[queue]map[job.Gate]bool) *turnsRead {
	var ofKeys []queue
	var names []string
	read := &turnsRead{}
	for of, gates := range keys {
		read.queues = append(read.queues, of)
		for gate := range gates {
			ofKeys, names = append(ofKeys, of), append(names, string(gate))
		}
	}
	types := func(of []queue) any { return postgres.Column(of, func(q queue) string { return q.jobType }) }
	urgencies := func(of []queue) any { return postgres.Column(of, func(q queue) int16 { return q.urgency }) }
	postgres.QueueRows(batch, &read.times, "virtual_times", pgx.RowToStructByName[virtualTimeRow], types(read.queues), urgencies(read.queues))
	postgres.QueueRows(batch, &read.turns, "turns_of", pgx.RowToStructByName[turnRow], types(ofKeys), urgencies(ofKeys), names)
	return read
}

// learn passes on what was read.
func (t *turnsRead) learn(a *admission) {
	for i, row := range t.times {
		a.queues[t.queues[i]] = &virtualTime{start: row.now(a.now), last: make(map[job.Gate]time.Time), changed: make(map[job.Gate]bool)}
	}
	for _, row := range t.turns {
		a.queues[queue{row.JobType, row.Urgency}].last[job.Gate(row.Key)] = row.Finish
	}
}

// now is the virtual time of the queue: the turn of the job that is claimed next, or the
// last one that was admitted if none waits. It begins with the time of day.
func (v *virtualTimeRow) now(clock time.Time) time.Time {
	now := clock
	switch {
	case v.RunAt != nil:
		now = *v.RunAt
	case v.Finish != nil:
		now = *v.Finish
	}
	if v.Start != nil && v.Start.After(now) {
		now = *v.Start
	}
	return now
}

func (a *admission) used(gate job.Gate) int32 {
	if g := a.gates[gate]; g != nil {
		return int32(g.used) //nolint:gosec // it came from the database
	}
	return 0
}
