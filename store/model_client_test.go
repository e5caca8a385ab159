package store

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What clients and operators do to single jobs.

// someGates draws the gates of a job; none for most.
func someGates(t *rapid.T) []job.Gate {
	return rapid.SampledFrom([][]job.Gate{nil, nil, {keyGate}, {keyGate, typeGate}, {job.NewGate(job.GateTenant, "", "t"), typeGate}}).Draw(t, "gates")
}

func (m *model) submission(t *rapid.T) job.Submission {
	one := job.Submission{
		ID: m.id(), Type: jobType, Tenant: job.DefaultTenant, Timeout: 30 * time.Second,
		Payload:        json.RawMessage(rapid.SampledFrom([]string{`{"n": 1}`, `{"n": 1}`, `{"n": 1}`, `{"n": 2}`}).Draw(t, "payload")),
		Priority:       rapid.Int16Range(-1, 1).Draw(t, "priority"),
		MaxAttempts:    rapid.IntRange(1, 3).Draw(t, "max attempts"),
		Gates:          someGates(t),
		IdempotencyKey: rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(t, "key"),
	}
	switch rapid.SampledFrom([]string{"now", "now", "now", "later", "at", "hold"}).Draw(t, "due") {
	case "later":
		one.Delay = time.Hour
	case "at":
		one.RunAt = m.at(m.now + rapid.SampledFrom([]int{-60, 60}).Draw(t, "run at"))
	case "hold":
		one.Hold = true
	}
	if rapid.IntRange(0, 4).Draw(t, "expires") == 0 {
		one.TTL = time.Hour
	}
	return one
}

// born adds a job.
func (m *model) born(one job.Submission) {
	j := &modelJob{
		id: one.ID, parent: one.Parent, key: one.IdempotencyKey, payload: string(one.Payload), priority: one.Priority, gates: one.Gates,
		most: one.MaxAttempts, created: m.now, updated: m.now, runAt: m.now, started: unset, finished: unset, expires: unset,
		expiry: unset, erased: unset, admitted: unset, logs: make(map[int64]string),
	}
	switch {
	case one.Hold:
		j.runAt = never
	case !one.RunAt.IsZero():
		j.runAt = int(one.RunAt.Sub(epoch) / time.Second)
	default:
		j.runAt += int(one.Delay / time.Second)
	}
	if one.TTL > 0 {
		j.expires = m.now + int(one.TTL/time.Second)
		j.expiry = j.expires
	}
	if j.state = job.Created; j.runAt <= m.now {
		j.state = job.Queued
		m.queue(j)
	}
	m.jobs, m.byID[j.id] = append(m.jobs, j), j
	m.happened["submitted"]++
}

// keeper is the job that has the key.
func (m *model) keeper(key string) *modelJob {
	at := slices.IndexFunc(m.jobs, func(j *modelJob) bool { return j.key == key && key != "" })
	if at < 0 {
		return nil
	}
	return m.jobs[at]
}

// refuses reports whether a submission with the job's key is another request. Nobody knows
// what the request of an erased job was.
func (j *modelJob) refuses(one job.Submission) bool {
	return j.erased == unset && j.payload != string(one.Payload)
}

func (m *model) submit(t *rapid.T) {
	batch := make([]job.Submission, rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "jobs"))
	for i := range batch {
		batch[i] = m.submission(t)
	}
	var done []job.Submitted
	if m.try(t, "submit", func(s *Store) error {
		done = s.Submit(m.ctx, batch)
		return nil
	}) {
		t.Fatal("a submission finds out what became of it")
	}
	first := make(map[string]int)
	for i, one := range batch {
		if at, seen := first[one.IdempotencyKey]; seen && one.IdempotencyKey != "" {
			before := batch[at]
			if done[at].Err == nil && string(before.Payload) != string(one.Payload) {
				require.ErrorIs(m.t, done[i].Err, job.ErrKeyReused)
			} else {
				require.Equal(m.t, done[at].Receipt.ID, done[i].Receipt.ID)
				require.Equal(m.t, done[at].Err == nil, done[i].Err == nil)
			}
			continue
		}
		first[one.IdempotencyKey] = i
		m.submitted(one, done[i])
	}
}

// submitted compares the result of the first submission with its key.
func (m *model) submitted(one job.Submission, done job.Submitted) {
	if known := m.keeper(one.IdempotencyKey); known != nil {
		if known.refuses(one) {
			require.ErrorIs(m.t, done.Err, job.ErrKeyReused)
			return
		}
		require.NoError(m.t, done.Err)
		require.Equal(m.t, known.id, done.Receipt.ID)
		require.Equal(m.t, known.state, done.Receipt.State)
		return
	}
	require.NoError(m.t, done.Err)
	require.Equal(m.t, one.ID, done.Receipt.ID)
	m.born(one)
	require.Equal(m.t, m.byID[one.ID].state, done.Receipt.State)
}

func (m *model) submitAll(t *rapid.T) {
	batch := make([]job.Submission, rapid.IntRange(1, 3).Draw(t, "jobs"))
	refused := false
	first := make(map[string]job.Submission)
	for i := range batch {
		one := m.submission(t)
		batch[i] = one
		before, seen := first[one.IdempotencyKey]
		known := m.keeper(one.IdempotencyKey)
		refused = refused || known != nil && known.refuses(one) ||
			seen && one.IdempotencyKey != "" && string(before.Payload) != string(one.Payload)
		if !seen {
			first[one.IdempotencyKey] = one
		}
	}
	var done []job.Submitted
	m.again(t, "submit all", func(s *Store) (err error) {
		done, err = s.SubmitAll(m.ctx, batch)
		return err
	})
	require.Equal(m.t, refused, slices.ContainsFunc(done, func(d job.Submitted) bool { return errors.Is(d.Err, job.ErrKeyReused) }))
	if refused {
		return
	}
	for i, one := range batch {
		if known := m.keeper(one.IdempotencyKey); known != nil {
			require.Equal(m.t, known.id, done[i].Receipt.ID)
			continue
		}
		m.submitted(one, done[i])
	}
}

// move does something to one job. If its outcome is unknown, the caller sends it again, which
// may be refused because it was done already.
func (m *model) move(t *rapid.T, verb string, j *modelJob, allowed bool, do func(*Store) error) {
	m.world.seen.asked(verb, j.state)
	var err error
	repeated := m.again(t, verb, func(s *Store) error {
		if err = do(s); errors.Is(err, job.ErrWrongState) || errors.Is(err, job.ErrErased) {
			return nil
		}
		return err
	})
	if !allowed {
		require.Error(m.t, err, "%s a job that is %s", verb, j.state)
	} else if !repeated {
		require.NoError(m.t, err, "%s a job that is %s", verb, j.state)
	}
}

func (m *model) cancel(t *rapid.T) {
	j := m.someJob(t)
	m.move(t, "cancel", j, j.state != job.Succeeded && j.state != job.Dead, func(s *Store) error {
		_, err := s.Cancel(m.ctx, j.id)
		return err
	})
	m.canceled(j)
}

func (m *model) canceled(j *modelJob) {
	switch j.state {
	case job.Running:
		j.cancelRequested = true
	case job.Created, job.Queued, job.Retry:
		m.happened["canceled"]++
		m.finish(j, job.Canceled)
	case job.Canceled, job.Succeeded, job.Dead:
	}
}

func (m *model) hold(t *rapid.T) {
	j := m.someJob(t)
	m.move(t, "hold", j, j.state == job.Created, func(s *Store) error {
		_, err := s.Hold(m.ctx, j.id)
		return err
	})
	m.held(j)
}

func (m *model) held(j *modelJob) {
	if j.state == job.Created {
		j.runAt, j.updated = never, m.now
	}
}

func (m *model) release(t *rapid.T) {
	j := m.someJob(t)
	m.move(t, "release", j, j.state == job.Created, func(s *Store) error {
		_, err := s.Release(m.ctx, j.id)
		return err
	})
	m.released(j)
}

func (m *model) released(j *modelJob) {
	if j.state == job.Created {
		j.runAt, j.updated = m.now, m.now
		m.queue(j)
	}
}

func (m *model) edit(t *rapid.T) {
	j := m.someJob(t)
	edit := job.Edit{}
	if rapid.Bool().Draw(t, "edit priority") {
		edit.Priority = new(rapid.Int16Range(-1, 1).Draw(t, "priority"))
	}
	if rapid.Bool().Draw(t, "edit tags") {
		edit.Tags = rapid.SampledFrom([][]string{{}, {"a"}, {"a", "b"}}).Draw(t, "tags")
	}
	switch rapid.SampledFrom([]string{"", "delay", "at"}).Draw(t, "edit due") {
	case "delay":
		edit.Delay = new(time.Duration(rapid.SampledFrom([]int{0, 60, 3600}).Draw(t, "delay")) * time.Second)
	case "at":
		edit.RunAt = m.at(m.now + rapid.SampledFrom([]int{-60, 0, 60}).Draw(t, "run at"))
	}
	waits := j.state == job.Created || j.state == job.Queued || j.state == job.Retry
	m.move(t, "edit", j, waits, func(s *Store) error {
		_, _, err := s.Edit(m.ctx, j.id, edit)
		return err
	})
	if waits {
		m.edited(j, edit)
	}
}

// edited changes a job that waits. A job that has passed gates keeps its place unless its due
// time changes.
func (m *model) edited(j *modelJob, edit job.Edit) {
	j.updated = m.now
	if edit.Priority != nil {
		j.priority = *edit.Priority
	}
	if edit.Tags != nil {
		j.tags = strings.Join(edit.Tags, ",")
	}
	switch {
	case edit.Delay != nil:
		j.runAt = m.now + int(*edit.Delay/time.Second)
	case !edit.RunAt.IsZero():
		j.runAt = int(edit.RunAt.Sub(epoch) / time.Second)
	default:
		return
	}
	switch {
	case j.runAt <= m.now:
		m.queue(j)
	case j.state == job.Queued && j.attempt == 0:
		m.become(j, job.Created)
	case j.state == job.Queued:
		m.become(j, job.Retry)
	}
}

func (m *model) requeue(t *rapid.T) {
	j := m.someJob(t)
	m.move(t, "requeue", j, j.state == job.Dead && j.erased == unset, func(s *Store) error {
		_, err := s.Requeue(m.ctx, j.id)
		return err
	})
	if j.state == job.Dead && j.erased == unset {
		m.revive(j)
	}
}

func (m *model) revive(j *modelJob) {
	j.attempt, j.interruptions, j.crashes, j.error, j.worker = 0, 0, 0, "", ""
	j.started, j.finished, j.runAt, j.updated, j.expires = unset, unset, m.now, m.now, unset
	m.queue(j)
	m.happened["requeued"]++
}

func (m *model) erase(t *rapid.T) {
	j := m.someJob(t)
	m.move(t, "erase", j, j.state.Final(), func(s *Store) error {
		_, err := s.Erase(m.ctx, j.id, "somebody", "they asked")
		return err
	})
	if !j.state.Final() || j.erased != unset {
		return
	}
	j.payload, j.result, j.progress, j.checkpoint, j.error, j.tags = "null", "", "", "", "", ""
	j.erased, j.updated = m.now, m.now
	for i := range j.attempts {
		j.attempts[i].error = ""
	}
	clear(j.logs)
}
