package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// The model is the requirements' state machine in memory: jobs, their owners, and
// every lease that ever existed. Two workers, which keep their stale leases, run
// random verbs on the store and on the model. After each step, the test compares the
// two.
func TestTheStoreBehavesLikeItsModel(t *testing.T) {
	s := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		_, err := s.db.Worker.Exec(t.Context(), "truncate jobs, ready, leases, timers, dead_letters, unsuccessful_attempts, workers, plugin_status, tallies, tally_totals, tally_slots, tally_workers, tally_attempts, "+
			"parked, wakes, slots, admitted, turns, expiries, unique_keys")
		require.NoError(rt, err)
		m := &model{
			T: rt, test: t, ctx: t.Context(), store: s, byID: make(map[job.ID]*modelJob),
			byWorker: map[string]map[job.State]int64{worker: {}, other: {}}, happened: v1.Recent{SinceMinutes: 60},
		}
		for name := range m.byWorker { // unknown workers' tallies would be deleted
			require.NoError(rt, s.RegisterWorker(t.Context(), job.Worker{ID: name}, aMinute))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":          m.compare,
			"submit":    m.submit,
			"claim":     m.claim,
			"settle":    m.settle,
			"note":      m.note,
			"renew":     m.renew,
			"expire":    m.expire,
			"reap":      m.reap,
			"promote":   m.promote,
			"admit":     m.admit,
			"park":      m.park,
			"pass":      m.pass,
			"cancel":    m.cancel,
			"release":   m.release,
			"requeue":   m.requeue,
			"redrive":   m.redrive,
			"discharge": m.discharge,
			"fold":      m.fold,
		})
	})
}

type model struct {
	*rapid.T
	test  *testing.T
	ctx   context.Context
	store *Store

	jobs   []*modelJob // in the order submitted
	byID   map[job.ID]*modelJob
	leases []*modelLease // every one that ever existed
	dead   []*modelJob
	notes  int // written so far, by either worker

	// What has happened, and which jobs each worker has ended.
	happened v1.Recent
	byWorker map[string]map[job.State]int64
}

type modelJob struct {
	id              job.ID
	key             string
	priority        int16
	state           job.State
	held, due       bool // in the timers
	gates           []job.Gate
	parked          bool // queued, at a gate
	attempt, most   int
	interruptions   int
	crashes         int
	fence           int64
	ended           int // attempts
	cancelRequested bool
	progress        string
	lease           *modelLease // the valid one, while running
}

type modelLease struct {
	job.Lease
	of      *modelJob
	worker  string
	expired bool
	settled bool // its settlement was written
	// What the claim returned about the job.
	attempt, interruptions, crashes int
}

func (l *modelLease) valid() bool { return l.of.lease == l }

// queue is what becomes of a job that is due: it is parked if it has gates.
func (j *modelJob) queue() {
	j.state, j.parked = job.Queued, len(j.gates) > 0
}

// someGates draws the gates of a job; none for most.
func someGates(t *rapid.T) []job.Gate {
	return rapid.SampledFrom([][]job.Gate{nil, nil, {keyGate}, {keyGate, typeGate}, {job.NewGate(job.GateTenant, "", "t"), typeGate}}).Draw(t, "gates")
}

func (m *model) submit(t *rapid.T) {
	change := func(j *job.Submission) {
		j.Priority = rapid.Int16Range(-1, 1).Draw(t, "priority")
		j.MaxAttempts = rapid.IntRange(1, 3).Draw(t, "max attempts")
		j.Gates = someGates(t)
		j.IdempotencyKey = rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(t, "key")
		switch rapid.SampledFrom([]string{"now", "now", "later", "hold"}).Draw(t, "due") {
		case "later":
			j.Delay = time.Hour
		case "hold":
			j.Hold = true
		}
	}
	asked := submission(m.test, change)
	done := m.store.Submit(m.ctx, []job.Submission{asked})[0]
	require.NoError(t, done.Err)
	known := slices.IndexFunc(m.jobs, func(j *modelJob) bool { return j.key != "" && j.key == asked.IdempotencyKey })
	if known >= 0 {
		require.Equal(t, m.jobs[known].id, done.Receipt.ID)
		require.Equal(t, m.jobs[known].state, done.Receipt.State)
		return
	}
	require.Equal(t, asked.ID, done.Receipt.ID)
	j := &modelJob{id: asked.ID, key: asked.IdempotencyKey, priority: asked.Priority, gates: asked.Gates, most: asked.MaxAttempts}
	if asked.Hold || asked.Delay > 0 {
		j.state, j.held = job.Created, asked.Hold
	} else {
		j.queue()
	}
	m.jobs, m.byID[j.id] = append(m.jobs, j), j
	m.happened.Submitted++
}

func (m *model) claim(t *rapid.T) {
	name := rapid.SampledFrom([]string{worker, other}).Draw(t, "worker")
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	m.store.marks = newLowWaterMarks()
	claimed, err := m.store.Claim(m.ctx, name, []string{jobType}, limit, aMinute)
	require.NoError(t, err)
	var urgencies []int16
	for _, j := range m.in(job.Queued) {
		if !j.parked {
			urgencies = append(urgencies, -j.priority)
		}
	}
	slices.Sort(urgencies)
	require.Len(t, claimed, min(limit, len(urgencies)))
	for i, c := range claimed {
		j := m.byID[c.JobID]
		require.Equal(t, job.Queued, j.state)
		require.False(t, j.parked)
		require.Equal(t, j.gates, c.Gates())
		require.Equal(t, urgencies[i], -c.Priority, "the most urgent first")
		j.state, j.attempt, j.fence = job.Running, j.attempt+1, j.fence+1
		require.Equal(t, []any{j.attempt, j.fence, j.interruptions, j.crashes}, []any{c.Attempt, c.Fence, c.Interruptions, c.Crashes})
		m.own(j, c.Lease, name)
	}
}

// own makes this lease the job's valid one.
func (m *model) own(j *modelJob, lease job.Lease, name string) {
	for _, l := range m.leases {
		require.NotEqual(m, l.ID, lease.ID, "a lease id issued twice")
	}
	j.lease = &modelLease{
		Lease: lease, of: j, worker: name, attempt: j.attempt, interruptions: j.interruptions, crashes: j.crashes,
	}
	m.leases = append(m.leases, j.lease)
}

func (m *model) settle(t *rapid.T) {
	chosen := m.someLeases(t)
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: time.Hour, JitterMin: 1, JitterMax: 1}
	settlements := make([]job.Settlement, len(chosen))
	want := make([]job.SettleResult, len(chosen))
	for i, l := range chosen {
		kind := rapid.SampledFrom(job.OutcomeKinds()).Draw(t, "outcome")
		at := job.History{
			Attempt: l.attempt, MaxAttempts: l.of.most, Interruptions: l.interruptions, Crashes: l.crashes, MaxCrashes: 2,
		}
		outcome := job.Outcome{Kind: kind, CoResidents: rapid.IntRange(0, 1).Draw(t, "company")}
		settlements[i] = job.Settlement{Lease: l.Lease, Number: l.attempt, Decision: job.Decide(policy, at, outcome, 0)}
		settlements[i].Began.Known = true
		to := settlements[i].To
		switch {
		case l.settled:
			want[i] = job.Settled
		case !l.valid():
			want[i] = job.Lost
		case l.of.cancelRequested && (to == job.Retry || to == job.Queued):
			want[i] = job.Canceling
		default:
			want[i] = job.Settled
		}
	}
	got, err := m.store.Settle(m.ctx, settlements)
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, to := range []job.State{job.Succeeded, job.Retry, job.Dead, job.Queued, job.Canceled} {
		for i, l := range chosen {
			if settlements[i].To == to && want[i] == job.Settled && !l.settled {
				m.end(l, settlements[i].Decision)
			}
		}
	}
}

func (m *model) end(l *modelLease, d job.Decision) {
	j := l.of
	l.settled, j.lease, j.cancelRequested, j.due = true, nil, false, false
	j.state, j.attempt, j.interruptions, j.crashes, j.ended = d.To, d.Attempt, d.Interruptions, d.Crashes, j.ended+1
	if d.To == job.Queued {
		j.queue()
	}
	if d.To == job.Dead {
		m.dead = append(m.dead, j)
	}
	if d.To.Final() {
		m.byWorker[l.worker][d.To]++
	}
	m.count(d)
}

// count records the effect of an attempt's end on the figures. The loss of an owner
// counts as a failure if it is charged.
func (m *model) count(d job.Decision) {
	switch d.To {
	case job.Succeeded:
		m.happened.Succeeded++
	case job.Canceled:
		m.happened.Canceled++
	case job.Dead:
		m.happened.Dead++
		m.happened.FailedAttempts++
	case job.Retry:
		if d.Kind != job.Snoozed {
			m.happened.FailedAttempts++
		}
	case job.Created, job.Queued, job.Running:
	}
}

func (m *model) note(t *rapid.T) {
	chosen := m.someLeases(t)
	notes := make([]job.Report, len(chosen))
	var want []job.Lease
	for i, l := range chosen {
		m.notes++
		notes[i] = job.Report{Lease: l.Lease, Progress: fmt.Appendf(nil, "%d", m.notes)}
		if l.valid() {
			l.of.progress = string(notes[i].Progress)
		} else {
			want = append(want, l.Lease)
		}
	}
	lost, err := m.store.SaveProgress(m.ctx, notes)
	require.NoError(t, err)
	require.ElementsMatch(t, want, lost)
}

func (m *model) renew(t *rapid.T) {
	name := rapid.SampledFrom([]string{worker, other}).Draw(t, "worker")
	chosen := m.someLeases(t)
	asked := make([]job.Lease, len(chosen))
	var want []job.Renewed
	for i, l := range chosen {
		asked[i] = l.Lease
		if l.valid() && !l.expired {
			want = append(want, job.Renewed{ID: l.ID, CancelRequested: l.of.cancelRequested})
		}
	}
	held, err := m.store.Renew(m.ctx, name, asked, aMinute)
	require.NoError(t, err)
	require.ElementsMatch(t, want, held)
}

func (m *model) expire(t *rapid.T) {
	for _, l := range m.someLeases(t) {
		if l.valid() {
			l.expired = true
			_, err := m.store.db.Worker.Exec(m.ctx, "update leases set expires_at = now() - interval '1 second' where lease_id = $1", postgres.UUID(l.ID))
			require.NoError(t, err)
		}
	}
}

func (m *model) reap(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	expired, err := m.store.Reap(m.ctx, limit, aMinute)
	require.NoError(t, err)
	var overdue []*modelLease
	for _, l := range m.leases {
		if l.valid() && l.expired {
			overdue = append(overdue, l)
		}
	}
	require.Len(t, expired, min(limit, len(overdue)))
	slices.SortFunc(expired, func(a, b job.Expired) int {
		return cmp.Compare(slices.Index(m.jobs, m.byID[a.JobID]), slices.Index(m.jobs, m.byID[b.JobID]))
	})
	for _, e := range expired {
		j := m.byID[e.JobID]
		require.Contains(t, overdue, j.lease)
		require.Equal(t, []any{j.attempt, j.most, j.interruptions, j.crashes, j.fence, j.cancelRequested, j.lease.worker},
			[]any{e.Attempt, e.MaxAttempts, e.Interruptions, e.Crashes, e.Fence, e.CancelRequested, e.Worker})
		m.own(j, e.Lease, e.Worker)
	}
}

func (m *model) promote(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	var due []*modelJob
	for _, j := range m.in(job.Created, job.Retry) {
		if j.due {
			due = append(due, j)
		}
	}
	promoted, err := m.store.Promote(m.ctx, limit)
	require.NoError(t, err)
	n := promoted.Ready + promoted.Parked
	require.Equal(t, min(limit, len(due)), n)
	parked := 0
	for _, j := range due {
		view, err := m.store.Get(m.ctx, j.id)
		require.NoError(t, err)
		if view.State == job.Queued {
			j.queue()
			j.due = false
			n--
			if j.parked {
				parked++
			}
		}
	}
	require.Zero(t, n, "nothing else was promoted")
	require.Equal(t, parked, promoted.Parked)
}

// admit lets all parked jobs pass: there are no limits.
func (m *model) admit(t *rapid.T) {
	for more := true; more; {
		round, err := m.store.Admit(m.ctx, nil)
		require.NoError(t, err)
		more = round.More
	}
	for _, j := range m.jobs {
		j.parked = false
	}
}

// park takes claimed jobs back, with other gates.
func (m *model) park(t *rapid.T) {
	chosen := m.someLeases(t)
	batch := make([]job.Parking, len(chosen))
	want := make([]job.SettleResult, len(chosen))
	for i, l := range chosen {
		batch[i] = job.Parking{Lease: l.Lease, Gates: someGates(t)}
		switch {
		case l.settled:
			want[i] = job.Settled
		case !l.valid():
			want[i] = job.Lost
		case l.of.cancelRequested:
			want[i] = job.Canceling
		default:
			want[i] = job.Settled
			l.of.gates, l.of.lease = batch[i].Gates, nil
			l.of.attempt--
			l.of.queue()
		}
	}
	got, err := m.store.Park(m.ctx, batch)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// pass lets two hours pass for the scheduler.
func (m *model) pass(t *rapid.T) {
	_, err := m.store.db.Worker.Exec(m.ctx, `with moved as (
			update timers set run_at = run_at - interval '2 hours' where run_at < 'infinity' returning job_id, run_at
		) update jobs j set run_at = m.run_at from moved m where m.job_id = j.job_id`)
	require.NoError(t, err)
	for _, j := range m.in(job.Created, job.Retry) {
		j.due = !j.held
	}
}

func (m *model) cancel(t *rapid.T) {
	j := m.someJob(t)
	view, err := m.store.Cancel(m.ctx, j.id)
	switch j.state {
	case job.Succeeded, job.Dead:
		require.ErrorIs(t, err, job.ErrWrongState)
		return
	case job.Running:
		j.cancelRequested = true
	case job.Created, job.Queued, job.Retry:
		m.happened.Canceled++
		j.state, j.due, j.held, j.parked = job.Canceled, false, false, false
	case job.Canceled:
	}
	require.NoError(t, err)
	require.Equal(t, j.state, view.State)
}

func (m *model) release(t *rapid.T) {
	j := m.someJob(t)
	_, err := m.store.Release(m.ctx, j.id)
	if j.state != job.Created {
		require.ErrorIs(t, err, job.ErrWrongState)
		return
	}
	require.NoError(t, err)
	j.held, j.due = false, false
	j.queue()
}

func (m *model) requeue(t *rapid.T) {
	j := m.someJob(t)
	_, err := m.store.Requeue(m.ctx, j.id)
	if j.state != job.Dead {
		require.ErrorIs(t, err, job.ErrWrongState)
		return
	}
	require.NoError(t, err)
	m.revive(j)
}

func (m *model) redrive(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	requeued, err := m.store.Redrive(m.ctx, job.DeadLetterFilter{Limit: limit})
	require.NoError(t, err)
	require.Len(t, requeued, min(limit, len(m.dead)))
	// One statement dead-letters all of its jobs at the same time, and this took some of
	// them.
	for _, one := range requeued {
		at := slices.IndexFunc(m.dead, func(j *modelJob) bool { return j.id == one.ID })
		require.GreaterOrEqual(t, at, 0, "it was dead")
		m.revive(m.dead[at])
	}
}

func (m *model) revive(j *modelJob) {
	j.attempt, j.interruptions, j.crashes = 0, 0, 0
	j.queue()
	m.happened.Requeued++
	m.dead = slices.DeleteFunc(m.dead, func(d *modelJob) bool { return d == j })
}

func (m *model) discharge(t *rapid.T) {
	name := rapid.SampledFrom([]string{worker, other}).Draw(t, "worker")
	n, err := m.store.ExpireWorkers(m.ctx, []string{name})
	require.NoError(t, err)
	for _, l := range m.leases {
		if l.valid() && l.worker == name {
			l.expired = true
			n--
		}
	}
	require.Zero(t, n, "leases let go")
}

// fold rolls up and ages the tallies, which must change no figure.
func (m *model) fold(t *rapid.T) {
	_, err := m.store.RollUpTallies(m.ctx, rapid.IntRange(1, 20).Draw(t, "rows"))
	require.NoError(t, err)
	require.NoError(t, m.store.AgeTallies(m.ctx))
}

// compareFigures compares the figures with the model's.
func (m *model) compareFigures(t *rapid.T) {
	states, attempts := make(map[job.State]int64), make(map[int]int64)
	for _, state := range job.States() {
		states[state] = 0
	}
	byWorker := make(map[string]map[job.State]int64)
	for name, ended := range m.byWorker {
		if len(ended) > 0 {
			byWorker[name] = maps.Clone(ended)
		}
	}
	for _, j := range m.jobs {
		states[j.state]++
		attempts[j.attempt]++
		if j.state != job.Running {
			continue
		}
		if byWorker[j.lease.worker] == nil {
			byWorker[j.lease.worker] = make(map[job.State]int64)
		}
		byWorker[j.lease.worker][job.Running]++
	}
	got, err := m.store.Metrics(m.ctx, time.Hour)
	require.NoError(t, err)
	require.Equal(t, states, got.StatusCounts)
	require.Equal(t, attempts, got.AttemptDistribution)
	require.Equal(t, byWorker, got.ByWorker)
	require.Equal(t, m.happened, got.Recent)
	require.Equal(t, m.happened.FailedAttempts, got.FailuresByJobType[jobType])
	took := ask[float64](m.test, m.store, `select coalesce(avg(extract(epoch from ended_at - claimed_at)), 0)::float8
		from job_attempts where outcome = 'succeeded'`)
	require.InDelta(t, took, got.AvgDurationSecondsByJobType[jobType], 1e-6)
}

// compare compares the whole database with the model.
func (m *model) compare(t *rapid.T) {
	m.compareFigures(t)
	disagreements, err := audit(m.ctx, m.store, 10)
	require.NoError(t, err)
	require.Empty(t, disagreements)
	requireSlots(m.ctx, t, m.store)
	rows, err := m.store.db.Worker.Query(m.ctx, `
		select j.job_id, j.state::text, j.attempt, j.interruptions, j.crashes, j.fence, l.lease_id,
			coalesce(l.cancel_requested, false) as cancel_requested, coalesce(j.progress::text, '') as progress,
			(select count(*) from job_attempts a where a.job_id = j.job_id and a.due_at is not null and a.began_at is not null)::int as ended,
			exists (select from parked p where p.job_id = j.job_id) as parked
		from current_jobs j left join leases l using (job_id)`)
	require.NoError(t, err)
	type row struct {
		JobID           [16]byte
		State           string
		Attempt         int
		Interruptions   int
		Crashes         int
		Fence           int64
		LeaseID         *[16]byte
		CancelRequested bool
		Progress        string
		Ended           int
		Parked          bool
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	require.NoError(t, err)
	require.Len(t, found, len(m.jobs))
	for _, got := range found {
		j, ok := m.byID[got.JobID]
		require.True(t, ok)
		want := row{
			JobID: j.id, State: string(j.state), Attempt: j.attempt, Interruptions: j.interruptions,
			Crashes: j.crashes, Fence: j.fence, CancelRequested: j.cancelRequested, Progress: j.progress, Ended: j.ended, Parked: j.parked,
		}
		if j.lease != nil {
			want.LeaseID = (*[16]byte)(&j.lease.ID)
		}
		require.Equal(t, want, got)
	}
}

func (m *model) in(states ...job.State) []*modelJob {
	var found []*modelJob
	for _, j := range m.jobs {
		if slices.Contains(states, j.state) {
			found = append(found, j)
		}
	}
	return found
}

func (m *model) someJob(t *rapid.T) *modelJob {
	if len(m.jobs) == 0 {
		t.Skip("no job yet")
	}
	return m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(t, "job")]
}

// someLeases draws up to four different leases, including stale ones.
func (m *model) someLeases(t *rapid.T) []*modelLease {
	if len(m.leases) == 0 {
		t.Skip("no lease yet")
	}
	places := rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.leases)-1), 1, min(4, len(m.leases)), rapid.ID[int]).Draw(t, "leases")
	chosen := make([]*modelLease, len(places))
	for i, place := range places {
		chosen[i] = m.leases[place]
	}
	return chosen
}
