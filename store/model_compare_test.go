package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// wholeRows has a row for each job: all that the database knows of it, as text, in the
// words of modelJob.String. The second statement counts the rows of each list.
const wholeRows = `
	select j.job_id, concat_ws(' ',
		case when l.job_id is not null then 'running' else j.state::text end, 'priority', j.priority, 'key', coalesce(j.idempotency_key, '-'),
		'parent', coalesce(j.parent_id::text, '-'), 'payload', j.payload, 'tags', array_to_string(j.tags, ','), 'gates', array_to_string(j.gates, ','),
		'attempt', j.attempt || '/' || j.max_attempts, 'interruptions', j.interruptions, 'crashes', j.crashes, 'fence', j.fence,
		'worker', coalesce(j.worker_id, '-'), 'lease', coalesce(j.lease_id::text, '-'),
		'created', clock.s(j.created_at), 'updated', clock.s(j.updated_at), 'run', clock.s(j.run_at), 'started', clock.s(j.started_at),
		'finished', clock.s(j.finished_at), 'expires', clock.s(j.expires_at), 'erased', clock.s(j.erased_at),
		'error', j.last_error, 'progress', j.progress, 'checkpoint', j.checkpoint, 'result', j.result)
	|| coalesce(E'\nready ' || -r.urgency || ' ' || r.attempt || ' run ' || clock.s(r.run_at) || ' admitted ' || clock.s(r.admitted_at), '')
	|| coalesce(E'\nparked ' || p.lane || ' ' || -p.urgency || ' ' || p.attempt || ' run ' || clock.s(p.position), '')
	|| coalesce(E'\ntimer ' || t.state || ' ' || t.attempt || ' run ' || clock.s(t.run_at), '')
	|| coalesce(E'\nlease ' || l.lease_id || ' ' || l.fence || ' ' || l.worker_id || ' claimed ' || clock.s(l.claimed_at)
		|| ' expires ' || clock.s(l.expires_at) || ' kept ' || l.kept || ' cancel ' || l.cancel_requested, '')
	|| case when d.job_id is not null then E'\ndead ' || clock.s(d.dead_at) || ' erased ' || coalesce(d.erased, false) else '' end
	|| case when e.job_id is not null then E'\nexpiry ' || clock.s(e.expires_at) else '' end
	|| coalesce((select string_agg(concat_ws(' ', E'\nattempt', a.fence, a.attempt, a.lease_id, a.worker_id, a.outcome, 'claimed', clock.s(a.claimed_at),
		'ended', clock.s(a.ended_at), 'due', clock.s(a.due_at), 'error', a.error), '' order by a.fence)
		from unsuccessful_attempts a where a.job_id = j.job_id), '')
	|| coalesce((select string_agg(concat_ws(' ', E'\nlog', g.fence, g.dropped), '' order by g.fence) from attempt_logs g where g.job_id = j.job_id), '')
	from jobs j
	left join ready r on r.job_id = j.job_id
	left join parked p on p.job_id = j.job_id
	left join timers t on t.job_id = j.job_id
	left join leases l on l.job_id = j.job_id
	left join dead_letters d on d.job_id = j.job_id
	left join expiries e on e.job_id = j.job_id
	order by j.job_id`

const listLengths = `select (select count(*) from ready) || ' ' || (select count(*) from parked) || ' ' || (select count(*) from timers) || ' ' ||
	(select count(*) from leases) || ' ' || (select count(*) from dead_letters) || ' ' || (select count(*) from expiries) || ' ' ||
	(select count(*) from unsuccessful_attempts) || ' ' || (select count(*) from attempt_logs)`

// compare compares every row with the model, in one round trip.
func (m *model) compare() {
	var got strings.Builder
	batch := &pgx.Batch{}
	batch.Queue(wholeRows).Query(func(rows pgx.Rows) error {
		var id uuid.UUID
		var text string
		_, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
			fmt.Fprintf(&got, "%s %s\n", id, text)
			return nil
		})
		return err
	})
	batch.Queue(listLengths).QueryRow(func(row pgx.Row) error {
		var lengths string
		err := row.Scan(&lengths)
		got.WriteString(lengths)
		return err
	})
	require.NoError(m.t, m.world.near.db.Worker.SendBatch(m.ctx, batch).Close())
	if want := m.String(); want != got.String() {
		require.Equal(m.t, want, got.String())
	}
}

// String is what the database must hold.
func (m *model) String() string {
	var text strings.Builder
	for _, j := range m.jobs {
		fmt.Fprintf(&text, "%s %s\n", uuid.UUID(j.id), m.rows(j))
	}
	ready, parked, expiring, attempts, logs := len(m.urgent()), 0, 0, 0, 0
	for _, j := range m.jobs {
		if j.state == job.Queued && j.parked {
			parked++
		}
		if j.expiry != unset {
			expiring++
		}
		attempts, logs = attempts+len(j.attempts), logs+len(j.logs)
	}
	fmt.Fprintf(&text, "%d %d %d %d %d %d %d %d", ready, parked, len(m.in(job.Created, job.Retry)), len(m.in(job.Running)), len(m.in(job.Dead)),
		expiring, attempts, logs)
	return text.String()
}

// rows are what the database must hold of a job.
func (m *model) rows(j *modelJob) string {
	var text strings.Builder
	list := func(format string, values ...any) { fmt.Fprintf(&text, format, values...) }
	list("%s priority %d key %s parent %s payload %s tags %s gates", j.state, j.priority, orNone(j.key), orNoID([16]byte(j.parent)), j.payload, j.tags)
	if j.gates != nil {
		list(" %s", joined(j.gates))
	}
	list(" attempt %d/%d interruptions %d crashes %d fence %d worker %s lease %s", j.attempt, j.most, j.interruptions, j.crashes, j.fence,
		orNone(j.worker), orNoID([16]byte(j.succeededUnder)))
	list(" created %s updated %s run %s started %s finished %s expires %s erased %s", second(j.created), second(j.updated), second(j.runAt),
		second(j.started), second(j.finished), second(j.expires), second(j.erased))
	for _, value := range []struct{ name, of string }{{"error", j.error}, {"progress", j.progress}, {"checkpoint", j.checkpoint}, {"result", j.result}} {
		if list(" %s", value.name); value.of != "" {
			list(" %s", value.of)
		}
	}
	switch {
	case j.state == job.Queued && j.parked:
		list("\nparked %s %d %d run %s", j.gates[0], j.priority, j.attempt, second(j.runAt))
	case j.state == job.Queued:
		list("\nready %d %d run %s admitted %s", j.priority, j.attempt, second(j.runAt), second(j.admitted))
	case j.state == job.Created || j.state == job.Retry:
		list("\ntimer %s %d run %s", j.state, j.attempt, second(j.runAt))
	case j.state == job.Running:
		l := j.lease
		list("\nlease %s %d %s claimed %s expires %s kept %t cancel %t", uuid.UUID(l.ID), l.Fence, l.worker, second(l.claimed), second(l.expires), l.kept, j.cancelRequested)
	case j.state == job.Dead:
		list("\ndead %s erased %t", second(j.finished), j.erased != unset)
	}
	if j.expiry != unset {
		list("\nexpiry %s", second(j.expiry))
	}
	for _, a := range j.attempts {
		list("\nattempt %d %d %s %s %s claimed %s ended %s due %s error", a.fence, a.number, uuid.UUID(a.lease), a.worker, a.outcome,
			second(a.claimed), second(a.ended), second(a.due))
		if a.error != "" {
			list(" %s", a.error)
		}
	}
	for fence := range j.fence + 2 {
		if log, found := j.logs[fence]; found {
			list("\nlog %d %s", fence, log)
		}
	}
	return text.String()
}

func second(at int) string {
	switch at {
	case unset:
		return "-"
	case never:
		return "never"
	}
	return strconv.Itoa(at) + ".000000"
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func orNoID(id uuid.UUID) string {
	if id == uuid.Nil {
		return "-"
	}
	return id.String()
}

func joined(gates []job.Gate) string {
	names := make([]string, len(gates))
	for i, gate := range gates {
		names[i] = string(gate)
	}
	return strings.Join(names, ",")
}

// listed are the jobs in a table.
func (m *model) listed(table string) map[job.ID]bool {
	rows, err := m.world.near.db.Worker.Query(m.ctx, "select job_id from "+table)
	require.NoError(m.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	require.NoError(m.t, err)
	found := make(map[job.ID]bool, len(ids))
	for _, id := range ids {
		found[id] = true
	}
	return found
}

// unknownLeases are those whose claim was not answered.
func (m *model) unknownLeases() []job.Lease {
	rows, err := m.world.near.db.Worker.Query(m.ctx, "select job_id, lease_id, fence from leases")
	require.NoError(m.t, err)
	type row struct {
		JobID, LeaseID [16]byte
		Fence          int64
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	require.NoError(m.t, err)
	var unknown []job.Lease
	for _, r := range found {
		if !slices.ContainsFunc(m.leases, func(l *modelLease) bool { return l.ID == r.LeaseID }) {
			unknown = append(unknown, job.Lease{JobID: r.JobID, ID: r.LeaseID, Fence: r.Fence, Gated: m.byID[r.JobID].gates != nil})
		}
	}
	return unknown
}

// figures folds the tallies, which must change no figure, and compares the figures and what the
// lists and the slots of gates say of each other.
func (m *model) figures(t *rapid.T) {
	s := m.world.near
	_, err := s.RollUpTallies(m.ctx, rapid.IntRange(1, 20).Draw(t, "rows"))
	require.NoError(m.t, err)
	require.NoError(m.t, s.AgeTallies(m.ctx))
	disagreements, err := audit(m.ctx, s, 10)
	require.NoError(m.t, err)
	require.Empty(m.t, disagreements)
	requireSlots(m.ctx, m.t, s)
	got, err := s.Metrics(m.ctx, 24*time.Hour)
	require.NoError(m.t, err)
	attempts := make(map[int]int64)
	for _, j := range slices.Concat(m.jobs, m.gone) {
		if attempts[j.attempt]++; j.state == job.Running { // the one that it is at counts
			attempts[j.attempt]--
			attempts[j.attempt+1]++
		}
	}
	maps.DeleteFunc(attempts, func(_ int, jobs int64) bool { return jobs == 0 })
	require.Equal(m.t, m.byState(), got.StatusCounts)
	require.Equal(m.t, attempts, got.AttemptDistribution)
	// The name under which a lease expires whose claim was not answered is no worker's.
	maps.DeleteFunc(got.ByWorker, func(name string, _ map[job.State]int64) bool { return !slices.Contains(m.workers(), name) })
	require.Equal(m.t, m.byWorker(), got.ByWorker)
	failed := m.happened["failed"] + m.happened["dead"]
	require.Equal(m.t, v1.Recent{
		SinceMinutes: 1440, Submitted: m.happened["submitted"], Succeeded: m.happened["succeeded"], Dead: m.happened["dead"],
		Canceled: m.happened["canceled"], Requeued: m.happened["requeued"], FailedAttempts: failed,
	}, got.Recent)
	require.Equal(m.t, failed, got.FailuresByJobType[jobType])
	if len(m.gone) == 0 {
		took := ask[float64](m.world.test, s, `select coalesce(avg(extract(epoch from ended_at - claimed_at)), 0)::float8
			from job_attempts where outcome = 'succeeded'`)
		require.InDelta(m.t, took, got.AvgDurationSecondsByJobType[jobType], 1e-6)
	}
}
