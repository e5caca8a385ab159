package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

var (
	urgent    = job.Edit{Priority: new(int16(7))}
	postponed = job.Edit{Delay: new(time.Hour)}
	atNoon    = job.Edit{RunAt: time.Date(2100, 1, 1, 12, 0, 0, 0, time.UTC)}
	dueNow    = job.Edit{Delay: new(time.Duration(0))}
	longDue   = job.Edit{RunAt: time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)}
	retagged  = job.Edit{Tags: []string{"new", "tags"}}
	untagged  = job.Edit{Tags: []string{}}
)

// tried makes a job that is ready again after a failed attempt.
func tried(t testing.TB, s *Store) job.ID {
	t.Helper()
	id := inState(t, s, job.Retry)
	exec(t, s, "update timers set run_at = now() where job_id = $1", postgres.UUID(id))
	exec(t, s, "update jobs set run_at = (select run_at from timers where job_id = $1) where job_id = $1", postgres.UUID(id))
	_, err := s.Promote(t.Context(), 10)
	require.NoError(t, err)
	requireState(t, s, id, job.Queued)
	return id
}

func TestEveryChangeInEveryState(t *testing.T) {
	s := open(t)
	waiting := map[string]func() job.ID{
		"held":      func() job.ID { return inState(t, s, job.Created) },
		"scheduled": func() job.ID { return given(t, s, func(j *job.Submission) { j.Delay = time.Hour }) },
		"ready":     func() job.ID { return inState(t, s, job.Queued) },
		"tried":     func() job.ID { return tried(t, s) },
		"retry":     func() job.ID { return inState(t, s, job.Retry) },
	}
	changes := map[string]struct {
		job.Edit
		leads map[string]job.State // every other job keeps its state
	}{
		"priority": {Edit: urgent},
		"tags":     {Edit: retagged},
		"no tags":  {Edit: untagged},
		"delay": {postponed, map[string]job.State{
			"ready": job.Created, "tried": job.Retry,
		}},
		"due time": {atNoon, map[string]job.State{
			"ready": job.Created, "tried": job.Retry,
		}},
		"now": {dueNow, map[string]job.State{
			"held": job.Queued, "scheduled": job.Queued, "retry": job.Queued,
		}},
		"past": {longDue, map[string]job.State{
			"held": job.Queued, "scheduled": job.Queued, "retry": job.Queued,
		}},
		"all of them": {job.Edit{Priority: new(int16(-3)), RunAt: atNoon.RunAt, Tags: retagged.Tags}, map[string]job.State{
			"ready": job.Created, "tried": job.Retry,
		}},
	}
	for name, change := range changes {
		for list, make := range waiting {
			t.Run(list+" "+name, func(t *testing.T) {
				id := make()
				exec(t, s, "update jobs set tags = '{old}' where job_id = $1", postgres.UUID(id))
				before := detail(t, s, id)
				to, moves := change.leads[list]
				if !moves {
					to = before.State
				}
				for range 2 { // repeating it changes nothing more
					view, gated, err := s.Edit(t.Context(), id, change.Edit)
					require.NoError(t, err)
					require.False(t, gated)
					require.Equal(t, to, view.State)
					requireState(t, s, id, to)
					requireChanged(t, before, detail(t, s, id), change.Edit)
				}
			})
		}
		for _, state := range []job.State{job.Running, job.Succeeded, job.Dead, job.Canceled} {
			t.Run(string(state)+" "+name, func(t *testing.T) {
				id := inState(t, s, state)
				before := row(t, s, id)
				view, _, err := s.Edit(t.Context(), id, change.Edit)
				require.ErrorIs(t, err, job.ErrWrongState)
				require.Equal(t, state, view.State)
				require.Equal(t, before, row(t, s, id))
				requireState(t, s, id, state)
			})
		}
	}
	_, _, err := s.Edit(t.Context(), newID(t), urgent)
	require.ErrorIs(t, err, job.ErrNotFound)
}

// requireChanged requires that a job differs by the change, and by nothing else.
func requireChanged(t testing.TB, before, after job.Detail, change job.Edit) {
	t.Helper()
	want := before
	want.State, want.UpdatedAt, want.RunAt, want.Waits = after.State, after.UpdatedAt, after.RunAt, after.Waits
	require.False(t, after.UpdatedAt.Before(before.UpdatedAt))
	if change.Priority != nil {
		want.Priority = *change.Priority
	}
	if change.Tags != nil {
		want.Tags = change.Tags
	}
	require.Equal(t, want, after)
	switch {
	case change.Delay != nil:
		require.True(t, after.RunAt.Equal(after.UpdatedAt.Add(*change.Delay)), "by the database's clock")
	case !change.RunAt.IsZero():
		require.True(t, after.RunAt.Equal(change.RunAt))
	default:
		require.True(t, after.RunAt.Equal(before.RunAt), after.RunAt)
	}
}

func TestAJobIsClaimedInItsNewOrder(t *testing.T) {
	s := open(t)
	ids := submit(t, s, submissions(t, 4, func(j *job.Submission) { j.Delay = -time.Minute })...)
	for i, change := range []job.Edit{dueNow, {Priority: new(int16(-1))}, urgent, {RunAt: longDue.RunAt}} {
		_, _, err := s.Edit(t.Context(), ids[i], change)
		require.NoError(t, err)
	}
	var order []job.ID
	for _, c := range claim(t, s, 10) {
		order = append(order, c.JobID)
	}
	require.Equal(t, []job.ID{ids[2], ids[3], ids[0], ids[1]}, order)
	requireSound(t, s)
}

// gatesOf are those of the gated jobs of these tests.
var gatesOf = []string{"fair:default/", "key:default/k", "type:ECHO"}

// readyWithGates makes a job with gates that is ready.
func readyWithGates(t testing.TB, s *Store, turn *bool) job.ID {
	t.Helper()
	id := given(t, s, func(j *job.Submission) { j.Delay = -time.Minute })
	exec(t, s, `update jobs set gates = $2, terms = '{"concurrencyKey": "k", "concurrencyLimit": 3, "onConflict": "queue"}' where job_id = $1`,
		postgres.UUID(id), gatesOf)
	exec(t, s, "update ready set turn = $2, run_at = case when $2 then '2000-01-01' else run_at end where job_id = $1", postgres.UUID(id), turn)
	exec(t, s, `insert into admitted (gate, job_id, job_type, urgency, position)
		select 'key:default/k', job_id, job_type, urgency, run_at from ready where job_id = $1`, postgres.UUID(id))
	return id
}

// parkedAt makes a job with gates that is parked in the lane.
func parkedAt(t testing.TB, s *Store, lane string, turn *bool) job.ID {
	t.Helper()
	id := readyWithGates(t, s, turn)
	exec(t, s, "delete from admitted where job_id = $1", postgres.UUID(id))
	exec(t, s, `with r as (delete from ready where job_id = $1 returning *)
		insert into parked (job_id, lane, urgency, position, turn, job_type, tenant, gates, attempt, capacity, on_conflict, parked_at)
		select job_id, $2, urgency, run_at, turn, job_type, 'default', $3, attempt, 3, 'queue', '2000-01-01' from r`,
		postgres.UUID(id), lane, gatesOf)
	return id
}

// place is where a job with gates is.
type place struct {
	List    string
	Lane    string
	Urgency int16
	// Due says that the position is the job's due time, not its turn.
	Due   bool
	Turn  bool
	Terms string
}

func placeOf(t testing.TB, s *Store, id job.ID) place {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), `
		select 'ready' as list, '' as lane, r.urgency, r.run_at = j.run_at as due, coalesce(r.turn, false) as turn, '' as terms
		from ready r join jobs j using (job_id) where r.job_id = $1
		union all
		select 'parked', p.lane, p.urgency, p.position = j.run_at, coalesce(p.turn, false), coalesce(p.capacity || ' ' || p.on_conflict, '')
		from parked p join jobs j using (job_id) where p.job_id = $1
		union all
		select 'timers', '', -j.priority, t.run_at = j.run_at, false, '' from timers t join jobs j using (job_id) where t.job_id = $1`,
		postgres.UUID(id))
	require.NoError(t, err)
	at, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[place])
	require.NoError(t, err)
	return at
}

func TestAJobWithGatesMovesBetweenItsGatesAndTheQueue(t *testing.T) {
	const lane, first, own = "key:default/k", "fair:default/", "3 queue"
	turn := new(true)
	freed := `{"(\"{fair:default/,key:default/k,type:ECHO}\",t)"`
	for name, c := range map[string]struct {
		make   func(testing.TB, *Store) job.ID
		change job.Edit
		to     place
		wakes  string
	}{
		"ready, priority":         {ready(nil), urgent, place{List: "ready", Urgency: -7, Due: true}, ""},
		"ready, tags":             {ready(nil), retagged, place{List: "ready", Due: true}, ""},
		"ready, postponed":        {ready(nil), postponed, place{List: "timers", Due: true}, freed + "}"},
		"ready, now":              {ready(nil), dueNow, place{"parked", first, 0, true, false, own}, freed + `,"({fair:default/},f)"}`},
		"turn, tags":              {ready(turn), retagged, place{List: "ready", Turn: true}, ""},
		"turn, priority":          {ready(turn), urgent, place{"parked", first, -7, true, false, own}, freed + `,"({fair:default/},f)"}`},
		"turn, the same priority": {ready(turn), job.Edit{Priority: new(int16(0))}, place{List: "ready", Turn: true}, ""},
		"turn, postponed":         {ready(turn), postponed, place{List: "timers", Due: true}, freed + "}"},
		"parked, priority":        {waitsIn(lane, nil), urgent, place{"parked", lane, -7, true, false, own}, `{"({key:default/k},f)"}`},
		"parked, tags":            {waitsIn(lane, nil), retagged, place{"parked", lane, 0, true, false, own}, `{"({key:default/k},f)"}`},
		"parked, now":             {waitsIn(lane, nil), dueNow, place{"parked", lane, 0, true, false, own}, `{"({key:default/k},f)"}`},
		"parked, postponed":       {waitsIn(lane, nil), postponed, place{List: "timers", Due: true}, ""},
		"parked turn, tags":       {waitsIn(lane, turn), retagged, place{"parked", lane, 0, false, true, own}, `{"({key:default/k},f)"}`},
		"parked turn, priority":   {waitsIn(lane, turn), urgent, place{"parked", first, -7, true, false, own}, `{"({fair:default/},f)"}`},
		"parked turn, now":        {waitsIn(lane, turn), dueNow, place{"parked", first, 0, true, false, own}, `{"({fair:default/},f)"}`},
		"scheduled, now":          {later, dueNow, place{"parked", first, 0, true, false, own}, `{"({fair:default/},f)"}`},
		"scheduled, priority":     {later, urgent, place{List: "timers", Urgency: -7, Due: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id := c.make(t, s)
			exec(t, s, "delete from wakes")
			before := detail(t, s, id)
			_, gated, err := s.Edit(t.Context(), id, c.change)
			require.NoError(t, err)
			require.True(t, gated)
			require.Equal(t, c.to, placeOf(t, s, id))
			requireSound(t, s)
			require.Equal(t, c.wakes, ask[string](t, s, "select coalesce(array_agg(w order by freed desc)::text, '') from wakes w"))
			require.Equal(t, 0, ask[int](t, s, `select count(*) from admitted a left join ready r
				on (r.job_type, r.urgency, r.run_at, r.job_id) = (a.job_type, a.urgency, a.position, a.job_id) where r.job_id is null`),
				"the admitter would think that the job has started")
			requireChanged(t, before, detail(t, s, id), c.change)
		})
	}
}

func ready(turn *bool) func(testing.TB, *Store) job.ID {
	return func(t testing.TB, s *Store) job.ID { t.Helper(); return readyWithGates(t, s, turn) }
}

func waitsIn(lane string, turn *bool) func(testing.TB, *Store) job.ID {
	return func(t testing.TB, s *Store) job.ID { t.Helper(); return parkedAt(t, s, lane, turn) }
}

func later(t testing.TB, s *Store) job.ID {
	t.Helper()
	id := readyWithGates(t, s, nil)
	_, _, err := s.Edit(t.Context(), id, postponed)
	require.NoError(t, err)
	return id
}

func TestAnEditBehindAClaimChangesNothing(t *testing.T) {
	s := open(t)
	id := given(t, s)
	commit := locked(t, s, sql.Text("claim"), claiming(1, aMinute)...)
	wait := after(func() job.State {
		view, _, err := s.Edit(context.Background(), id, urgent)
		if !errors.Is(err, job.ErrWrongState) {
			t.Error(err)
		}
		return view.State
	})
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, job.Running, wait())
	require.Zero(t, ask[int](t, s, "select priority::int from jobs"))
	requireSound(t, s)
}

func TestAClaimSkipsAJobThatIsBeingPostponed(t *testing.T) {
	s := open(t)
	id := given(t, s)
	batch := &pgx.Batch{}
	editing{ids: []job.ID{id}, edit: postponed}.queue(batch)
	commit := locked(t, s, batch.QueuedQueries[2].SQL, batch.QueuedQueries[2].Arguments...)
	require.Empty(t, claim(t, s, 10))
	commit()
	require.Empty(t, claim(t, s, 10))
	requireState(t, s, id, job.Created)
}

func TestAnEditBehindAPromotionFindsTheJobInTheQueue(t *testing.T) {
	s := open(t)
	id := given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	exec(t, s, "update timers set run_at = now() - interval '1 second'")
	exec(t, s, "update jobs set run_at = (select run_at from timers)")
	commit := locked(t, s, sql.Text("promote"), 10)
	wait := after(func() error {
		_, _, err := s.Edit(context.Background(), id, urgent)
		return err
	})
	awaitBlocked(t, s, 1)
	commit()
	require.NoError(t, wait())
	requireState(t, s, id, job.Queued)
	require.Equal(t, int16(7), claim(t, s, 1)[0].Priority)
}

func TestAnEditBehindACancelIsRefused(t *testing.T) {
	s := open(t)
	for _, delay := range []time.Duration{0, time.Hour} {
		id := given(t, s, func(j *job.Submission) { j.Delay = delay })
		commit := locked(t, s, sql.Text("cancel"), postgres.UUID(id))
		wait := after(func() error {
			_, _, err := s.Edit(context.Background(), id, urgent)
			return err
		})
		awaitBlocked(t, s, 1)
		commit()
		require.ErrorIs(t, wait(), job.ErrWrongState)
		requireState(t, s, id, job.Canceled)
	}
}

// job.ErrUnavailable would be permanent, and clients would wait for the database.
func TestAnEditThatTheListsMakeImpossibleDoesNotBlameTheDatabase(t *testing.T) {
	s := open(t)
	id := given(t, s)
	exec(t, s, "delete from ready")
	_, _, err := s.Edit(t.Context(), id, urgent)
	require.ErrorContains(t, err, "edit a job that is queued: its list disagrees with the ledger")
	require.NotErrorIs(t, err, job.ErrUnavailable)
	require.NotErrorIs(t, err, job.ErrWrongState)
}

func TestAllJobsOfAPageAreChanged(t *testing.T) {
	s := open(t)
	tagged := func(tag string) func(*job.Submission) {
		return func(j *job.Submission) { j.Tags = []string{tag} }
	}
	held := given(t, s, tagged("x"), func(j *job.Submission) { j.Hold = true })
	first := given(t, s, tagged("x"))
	given(t, s, tagged("y"))
	started := running(t, s, tagged("x"), func(j *job.Submission) { j.Priority = 9 }).JobID
	last := given(t, s, tagged("x"))

	filter := job.Filter{States: []job.State{job.Created, job.Queued, job.Retry}, Tag: "x", Limit: 2}
	page, err := s.EditAll(t.Context(), filter, urgent)
	require.NoError(t, err)
	require.ElementsMatch(t, []job.ID{last, first}, idsOf(page.Edited))
	full := detail(t, s, last)
	at := slices.IndexFunc(page.Edited, func(c job.Edited) bool { return c.ID == last })
	require.Equal(t, job.Edited{ID: last, Type: full.Type, Tenant: full.Tenant, State: job.Queued, Trace: full.Trace}, page.Edited[at])
	filter.After = page.Next
	page, err = s.EditAll(t.Context(), filter, urgent)
	require.NoError(t, err)
	require.Equal(t, []job.ID{held}, idsOf(page.Edited))
	require.Zero(t, page.Next)
	require.Equal(t, job.Running, get(t, s, started).State)
	require.Equal(t, 3, ask[int](t, s, "select count(*) from jobs where priority = 7"))

	// A job that loses the tag, or its state, after it was listed is left alone.
	wanted := editing{ids: []job.ID{first, held}, edit: postponed, tag: "y"}
	require.Empty(t, apply(t, s, wanted))
	wanted.tag, wanted.states = "x", []job.State{job.Created}
	require.Equal(t, []job.ID{held}, idsOf(apply(t, s, wanted)))
	requireSound(t, s)
}

func apply(t testing.TB, s *Store, e editing) []job.Edited {
	t.Helper()
	batch := &pgx.Batch{}
	changed := e.queue(batch)
	require.NoError(t, connect(t, urlOf(s)).SendBatch(t.Context(), batch).Close())
	return changed()
}

func idsOf(changed []job.Edited) []job.ID {
	ids := make([]job.ID, len(changed))
	for i, one := range changed {
		ids[i] = one.ID
	}
	return ids
}

// Edits, cancels, claims, promotions and settlements race. An edit that is refused changes
// nothing, and one that is not is seen by the next claim.
func TestEditsRacingWithEveryLoop(t *testing.T) {
	s := open(t)
	const jobs, rounds = 40, 8
	ids := submit(t, s, submissions(t, jobs)...)
	ctx := t.Context()
	repeat, end := loops(t)
	defer end()
	var edits sync.WaitGroup
	repeat(func() error { _, err := s.Promote(ctx, 3); return err })
	for range 2 {
		repeat(func() error {
			claimed, err := s.Claim(ctx, worker, []string{jobType}, 3, aMinute)
			for _, c := range claimed {
				results, err := s.Settle(ctx, []job.Settlement{as(c, job.Released)})
				if err != nil || results[0] != job.Settled && results[0] != job.Canceling {
					return errors.Join(err, errors.New("owner got "+string(results[0])))
				}
				if results[0] == job.Canceling {
					if _, err := s.Settle(ctx, []job.Settlement{as(c, job.CancelConfirmed)}); err != nil {
						return err
					}
				}
			}
			return err
		})
	}
	for part := range 4 {
		edits.Go(func() {
			for round := range rounds {
				for i := range jobs {
					id := ids[(i*7+part*11+round)%jobs]
					change := []job.Edit{urgent, {Delay: new(time.Millisecond)}, dueNow, retagged, {Priority: new(int16(part))}}[(i+part)%5]
					_, _, err := s.Edit(ctx, id, change)
					if err != nil && !errors.Is(err, job.ErrWrongState) && !errors.Is(err, job.ErrUnavailable) {
						t.Error(err)
					}
				}
				if _, err := s.EditAll(ctx, job.Filter{States: []job.State{job.Created, job.Queued, job.Retry}, Limit: 10}, urgent); err != nil {
					t.Error(err)
				}
				if _, err := s.Cancel(ctx, ids[part*rounds+round]); err != nil && !errors.Is(err, job.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	edits.Wait()
	end()
	requireSound(t, s)
	require.Equal(t, jobs, ask[int](t, s, "select count(*) from jobs"))
}

// Edits race with rounds of admission, claims and settlements of jobs with gates. No slot is
// lost, none is left over, and every job is done in the end.
func TestEditsRacingWithTheAdmitter(t *testing.T) {
	s := open(t)
	limit := concurrency(job.LimitType, jobType, 3)
	limit.Fair = true
	rules := limitedBy(concurrency(job.LimitKey, "*", 2), limit)
	const jobs, rounds = 24, 6
	ids := make([]job.ID, jobs)
	for i := range ids {
		ids[i] = parks(t, s, rules, job.Terms{ConcurrencyKey: "k" + string(rune('a'+i%4))})
	}
	ctx := t.Context()
	stop := make(chan struct{})
	var loops, edits sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); loops.Wait() })
	defer end()
	work := func(outcome job.OutcomeKind) error {
		if _, err := s.Promote(ctx, 100); err != nil {
			return err
		}
		if _, err := s.Admit(ctx, rules); err != nil {
			return err
		}
		claimed, err := s.Claim(ctx, worker, []string{jobType}, 3, aMinute)
		for _, c := range claimed {
			if results, err := s.Settle(ctx, []job.Settlement{as(c, outcome)}); err != nil || results[0] != job.Settled {
				return errors.Join(err, errors.New("the owner's settlement was lost"))
			}
		}
		return err
	}
	for range 2 {
		loops.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := work(job.Released); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for part := range 3 {
		edits.Go(func() {
			for round := range rounds {
				for i := range jobs {
					change := []job.Edit{urgent, {Delay: new(time.Millisecond)}, dueNow, retagged, {Priority: new(int16(part))}}[(i+part+round)%5]
					_, _, err := s.Edit(ctx, ids[(i*7+part*11+round)%jobs], change)
					if err != nil && !errors.Is(err, job.ErrWrongState) && !errors.Is(err, job.ErrUnavailable) {
						t.Error(err)
					}
				}
			}
		})
	}
	edits.Wait()
	end()
	requireSound(t, s)
	requireSlots(ctx, t, s)
	require.Eventually(t, func() bool {
		require.NoError(t, work(job.Success))
		return ask[int](t, s, "select count(*) from jobs where state = 'succeeded'") == jobs
	}, patience, time.Millisecond)
	admitAll(t, s, rules)
	requireSound(t, s)
	require.Zero(t, ask[int](t, s, "select count(*) from slots"), "nothing is left over")
}
