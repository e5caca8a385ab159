package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What the scheduler's loops do to many jobs.

// promote queues what is due. Of jobs that are due at the same time, any may come first.
func (m *model) promote(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	var due []*modelJob
	for _, j := range m.in(job.Created, job.Retry) {
		if j.runAt <= m.now {
			due = append(due, j)
		}
	}
	var promoted job.Promoted
	unknown := m.try(t, "promote", func(s *Store) (err error) {
		promoted, err = s.Promote(m.ctx, limit)
		return err
	})
	waiting := m.listed("timers")
	n, parked := 0, 0
	for _, j := range due {
		if waiting[j.id] {
			continue
		}
		j.updated = m.now
		m.queue(j)
		if n++; j.parked {
			parked++
		}
	}
	require.Equal(m.t, min(limit, len(due)), n)
	if !unknown {
		require.Equal(m.t, job.Promoted{Ready: n - parked, Parked: parked}, promoted)
	}
}

// expire cancels what has not started in time.
func (m *model) expire(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	var due []*modelJob
	for _, j := range m.jobs {
		if j.expiry != unset && j.expiry <= m.now {
			due = append(due, j)
		}
	}
	var entries int
	unknown := m.try(t, "expire", func(s *Store) (err error) {
		_, entries, err = s.Expire(m.ctx, limit)
		return err
	})
	left, n := m.listed("expiries"), 0
	for _, j := range due {
		if left[j.id] {
			continue
		}
		n++
		j.expiry = unset
		if j.expires != unset && (j.state == job.Created || j.state == job.Queued) {
			j.error = fmt.Sprintf("expired at %s: it had not started", m.at(j.expires).Format("2006-01-02T15:04:05.000Z"))
			m.happened["canceled"]++
			m.finish(j, job.Canceled)
		}
	}
	require.Equal(m.t, min(limit, len(due)), n)
	if !unknown {
		require.Equal(m.t, n, entries)
	}
}

// admit lets all parked jobs pass: there are no limits.
func (m *model) admit(t *rapid.T) {
	for more := true; more; {
		var round job.Admission
		m.again(t, "admit", func(s *Store) (err error) {
			round, err = s.Admit(m.ctx, nil)
			return err
		})
		more = round.More
	}
	for _, j := range m.in(job.Queued) {
		if j.parked {
			j.parked, j.admitted = false, m.now
		}
	}
}

// redrive requeues the longest dead.
func (m *model) redrive(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	dead := slices.DeleteFunc(m.in(job.Dead), func(j *modelJob) bool { return j.erased != unset })
	slices.SortStableFunc(dead, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(a.finished, b.finished), slices.Compare(a.id[:], b.id[:]))
	})
	dead = dead[:min(limit, len(dead))]
	var requeued []job.Requeued
	unknown := m.try(t, "redrive", func(s *Store) (err error) {
		requeued, err = s.Redrive(m.ctx, job.DeadLetterFilter{Limit: limit})
		return err
	})
	if !unknown {
		require.Len(m.t, requeued, len(dead))
	}
	for _, j := range dead {
		m.revive(j)
	}
}

// operate does something to all jobs that were created, or ended, until now. If the answer of
// a portion is lost, the next one finds that there is nothing left.
func (m *model) operate(t *rapid.T) {
	action := rapid.SampledFrom(job.Actions()).Draw(t, "action")
	states := action.States()
	only := states[rapid.IntRange(0, len(states)-1).Draw(t, "state")]
	priority := rapid.Int16Range(-1, 1).Draw(t, "priority")
	start := job.OperationStart{Operation: job.Operation{
		ID: m.id(), Action: action, Filter: job.Filter{States: []job.State{only}, FrozenAt: m.at(m.now)}, Rate: 1000, By: "somebody",
	}}
	if action == job.ActionEdit {
		start.Priority = &priority
	}
	m.again(t, "start operation", func(s *Store) error {
		_, err := s.StartOperation(m.ctx, start)
		return err
	})
	var found bool
	repeated := m.again(t, "operate", func(s *Store) (err error) {
		_, found, err = s.OperateNext(m.ctx)
		return err
	})
	require.True(m.t, found || repeated, "an operation is due")
	for _, j := range m.in(only) {
		if max(j.created, j.finished) > m.now && j.finished == unset || j.finished > m.now {
			continue
		}
		switch action {
		case job.ActionCancel:
			m.canceled(j)
		case job.ActionHold:
			m.held(j)
		case job.ActionRelease:
			m.released(j)
		case job.ActionEdit:
			m.edited(j, job.Edit{Priority: &priority})
		case job.ActionRequeue:
			if j.erased == unset {
				m.revive(j)
			}
		}
	}
}

// sweep deletes what ended more than an hour ago.
func (m *model) sweep(t *rapid.T) {
	walk := rapid.SampledFrom([]job.Walk{job.WalkEnded, job.WalkDead}).Draw(t, "walk")
	keep := time.Hour
	policies := job.RetentionPolicies{Default: job.Retention{Succeeded: &keep, Canceled: &keep, Dead: &keep, Keys: &keep}}
	m.again(t, "sweep", func(s *Store) error {
		_, err := s.Sweep(m.ctx, walk, policies, worker, 1000, true)
		return err
	})
	m.jobs = slices.DeleteFunc(m.jobs, func(j *modelJob) bool {
		over := slices.Contains(walk.States(), j.state) && j.finished+3600 <= m.now
		if over {
			m.gone = append(m.gone, j)
			delete(m.byID, j.id)
		}
		return over
	})
}

// discharge is for a worker that has ended: its leases expire at once.
func (m *model) discharge(t *rapid.T) {
	name := m.someWorker(t)
	var n int
	m.again(t, "expire workers", func(s *Store) (err error) {
		n, err = s.ExpireWorkers(m.ctx, []string{name})
		return err
	})
	for _, j := range m.in(job.Running) {
		if j.lease.worker == name {
			j.lease.end(m.now)
			n--
		}
	}
	if !m.stopped[name] {
		m.stopped[name], m.alive[name] = true, min(m.alive[name], m.now)
	}
	require.Zero(m.t, n, "leases let go")
}

// releaseUnanswered gives back what a worker has claimed without an answer: all but some of
// its leases.
func (m *model) releaseUnanswered(t *rapid.T) {
	name := m.someWorker(t)
	var known []job.LeaseID
	var unanswered []*modelLease
	for _, j := range m.in(job.Running) {
		switch {
		case j.lease.worker != name:
		case rapid.Bool().Draw(t, "known"):
			known = append(known, j.lease.ID)
		default:
			unanswered = append(unanswered, j.lease)
		}
	}
	var n int
	repeated := m.again(t, "release unanswered", func(s *Store) (err error) {
		n, err = s.ReleaseUnanswered(m.ctx, name, known)
		return err
	})
	if !repeated {
		require.Equal(m.t, len(unanswered), n)
	}
	for _, l := range unanswered {
		l.end(m.now)
		l.worker = name + " (claim unanswered)"
	}
}
