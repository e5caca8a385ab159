package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What workers do: claim, report, and end attempts.

func (m *model) someWorker(t *rapid.T) string {
	return rapid.SampledFrom(m.workers()).Draw(t, "worker")
}

// claim claims jobs. If the answer is lost, nobody knows of their leases.
func (m *model) claim(t *rapid.T) {
	name := m.someWorker(t)
	limit := rapid.IntRange(1, 4).Draw(t, "limit")
	urgent := m.urgent()
	urgent = urgent[:min(limit, len(urgent))]
	var claimed []job.Claimed
	unknown := m.try(t, "claim", func(s *Store) (err error) {
		claimed, err = s.Claim(m.ctx, name, []string{jobType}, limit, aMinute)
		return err
	})
	if unknown {
		claimed = nil
		for _, l := range m.unknownLeases() {
			claimed = append(claimed, job.Claimed{Lease: l})
		}
		slices.SortFunc(claimed, func(a, b job.Claimed) int {
			return slices.Index(urgent, m.byID[a.JobID]) - slices.Index(urgent, m.byID[b.JobID])
		})
	}
	require.Len(m.t, claimed, len(urgent))
	for i, c := range claimed {
		j := urgent[i]
		require.Equal(m.t, j.id, c.JobID, "the most urgent first")
		m.become(j, job.Running)
		m.own(j, c.Lease, name, m.now, m.now+60)
		require.Equal(m.t, j.fence+1, c.Fence)
		if !unknown {
			require.Equal(m.t, []any{j.attempt + 1, j.interruptions, j.crashes, j.gates, j.payload},
				[]any{c.Attempt, c.Interruptions, c.Crashes, c.Gates(), string(c.Payload)})
			require.Equal(m.t, []time.Time{m.at(j.runAt), m.at(m.now), m.at(j.created)}, []time.Time{c.RunAt.UTC(), c.ClaimedAt.UTC(), c.CreatedAt.UTC()})
		}
	}
}

// outcome draws how an attempt ended.
func (m *model) outcome(t *rapid.T) job.Outcome {
	outcome := job.Outcome{Kind: rapid.SampledFrom(job.OutcomeKinds()).Draw(t, "outcome"), CoResidents: rapid.IntRange(0, 1).Draw(t, "company")}
	if after := rapid.SampledFrom([]int{-1, -1, 0, 90}).Draw(t, "retry after"); after >= 0 {
		outcome.RetryAfter = new(time.Duration(after) * time.Second)
	}
	return outcome
}

// settlement is what follows from an outcome by the retry policy.
func (m *model) settlement(l *modelLease, outcome job.Outcome) job.Settlement {
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: time.Hour, JitterMin: 1, JitterMax: 1}
	at := job.History{
		Attempt: l.attempt, MaxAttempts: l.of.most, Interruptions: l.interruptions, Crashes: l.crashes, MaxCrashes: 2,
	}
	one := job.Settlement{Lease: l.Lease, Number: l.attempt, Decision: job.Decide(policy, at, outcome, 0), Started: true}
	one.Followed, one.Gated = false, len(l.of.gates) > 0
	one.Began.Known = true
	if m.notes++; outcome.Kind == job.Success {
		one.Result = fmt.Appendf(nil, "%d", m.notes)
	} else {
		one.Error = fmt.Sprintf("e%d", m.notes)
	}
	return one
}

// expect is what a settlement must return. A parked attempt leaves no trace.
func (m *model) expect(l *modelLease, to job.State) job.SettleResult {
	switch {
	case l.settled && m.byID[l.JobID] != nil:
		m.world.seen.stale(string(to))
		return job.Settled
	case !l.valid():
		m.world.seen.stale(string(to))
		return job.Lost
	case l.of.cancelRequested && (to == job.Retry || to == job.Queued || to == job.Dead):
		return job.Canceling
	}
	return job.Settled
}

func (m *model) settle(t *rapid.T) {
	chosen := m.someLeases(t)
	settlements := make([]job.Settlement, len(chosen))
	for i, l := range chosen {
		settlements[i] = m.settlement(l, m.outcome(t))
	}
	m.settleThese(t, chosen, settlements)
}

func (m *model) settleThese(t *rapid.T, chosen []*modelLease, settlements []job.Settlement) {
	want := make([]job.SettleResult, len(chosen))
	for i, l := range chosen {
		want[i] = m.expect(l, settlements[i].To)
	}
	var got []job.SettleResult
	m.again(t, "settle", func(s *Store) (err error) {
		got, err = s.Settle(m.ctx, settlements)
		return err
	})
	require.Equal(m.t, want, got)
	for i, l := range chosen {
		if want[i] == job.Settled && l.valid() {
			m.settled(l, settlements[i])
		}
	}
}

// settled ends an attempt.
func (m *model) settled(l *modelLease, s job.Settlement) {
	j := l.of
	l.settled, j.lease, j.cancelRequested = true, nil, false
	due := j.runAt
	j.fence, j.worker, j.started, j.updated = l.Fence, l.worker, l.claimed, m.now
	if s.To == job.Succeeded {
		m.finish(j, job.Succeeded)
		j.attempt, j.crashes, j.error, j.checkpoint, j.result, j.succeededUnder = j.attempt+1, 0, "", "", string(s.Result), l.ID
	} else {
		j.attempt, j.interruptions, j.crashes, j.error = s.Attempt, s.Interruptions, s.Crashes, s.Error
		j.attempts = append(j.attempts, modelAttempt{
			fence: l.Fence, number: s.Number, lease: l.ID, worker: l.worker, outcome: s.Kind, error: s.Error,
			claimed: l.claimed, ended: m.now, due: due,
		})
	}
	switch s.To {
	case job.Retry:
		m.become(j, job.Retry)
		j.runAt, j.expires = m.now+int(s.Delay/time.Second), unset
		if s.Kind != job.Snoozed && s.Kind != job.Released {
			m.happened["failed"]++
		}
	case job.Queued:
		m.queue(j)
		j.expires = unset // it had started
	case job.Dead, job.Canceled:
		m.finish(j, s.To)
	case job.Succeeded, job.Created, job.Running:
	}
	if s.To.Final() {
		m.happened[string(s.To)]++
		if ended, known := m.ended[l.worker]; known {
			ended[s.To]++
		}
	}
}

// followUp ends attempts as succeeded, together with the jobs that they submit.
func (m *model) followUp(t *rapid.T) {
	chosen := m.someLeases(t)
	settlements := make([]job.Settlement, len(chosen))
	want := make([]job.SettleResult, len(chosen))
	for i, l := range chosen {
		settlements[i] = m.settlement(l, job.Outcome{Kind: job.Success})
		for range rapid.IntRange(0, 2).Draw(t, "follow-ups") {
			one := m.submission(t)
			one.Parent, one.IdempotencyKey = l.JobID, "" // keys are for clients here
			settlements[i].FollowUps = append(settlements[i].FollowUps, one)
		}
		want[i] = m.expect(l, job.Succeeded)
	}
	var got []job.SettleResult
	m.again(t, "settle with follow-ups", func(s *Store) (err error) {
		got, _, err = s.SettleWithFollowUps(m.ctx, settlements)
		return err
	})
	require.Equal(m.t, want, got)
	for i, l := range chosen {
		if want[i] != job.Settled || !l.valid() {
			continue
		}
		m.settled(l, settlements[i])
		for _, one := range settlements[i].FollowUps {
			m.born(one)
		}
	}
}

// report saves progress, a checkpoint and a log.
func (m *model) report(t *rapid.T) {
	chosen := m.someLeases(t)
	reports := make([]job.Report, len(chosen))
	var want []job.Lease
	for i, l := range chosen {
		m.notes++
		note := fmt.Sprint(m.notes)
		reports[i] = job.Report{Lease: l.Lease, Progress: []byte(note), Checkpoint: []byte(note), Log: &job.AttemptLog{Number: l.attempt, Dropped: int64(m.notes)}}
		if l.valid() {
			l.of.progress, l.of.checkpoint, l.of.updated = note, note, m.now
			l.of.logs[l.Fence] = note
		} else {
			m.world.seen.stale("report")
			want = append(want, l.Lease)
		}
	}
	for verb, save := range map[string]func(*Store) ([]job.Lease, error){
		"save progress": func(s *Store) ([]job.Lease, error) { return s.SaveProgress(m.ctx, reports) },
		"save logs":     func(s *Store) ([]job.Lease, error) { return s.SaveLogs(m.ctx, reports) },
	} {
		var lost []job.Lease
		m.again(t, verb, func(s *Store) (err error) {
			lost, err = save(s)
			return err
		})
		require.ElementsMatch(m.t, want, lost)
	}
}

// reap takes over what has expired. If the answer is lost, nobody knows of the new leases.
func (m *model) reap(t *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(t, "limit")
	var overdue []*modelLease
	for _, l := range m.leases {
		if m.expired(l) {
			overdue = append(overdue, l)
		}
	}
	var expired []job.Expired
	unknown := m.try(t, "reap", func(s *Store) (err error) {
		expired, err = s.Reap(m.ctx, limit, aMinute)
		return err
	})
	if unknown {
		expired = nil
		for _, l := range m.unknownLeases() {
			expired = append(expired, job.Expired{Lease: l})
		}
	}
	require.Len(m.t, expired, min(limit, len(overdue)))
	for _, e := range expired {
		j := m.byID[e.JobID]
		before := j.lease
		require.Contains(m.t, overdue, before)
		require.Equal(m.t, before.Fence, e.Fence)
		if !unknown {
			require.Equal(m.t, []any{j.attempt + 1, j.most, j.interruptions, j.crashes, j.cancelRequested, before.worker, m.at(m.expiry(before))},
				[]any{e.Attempt, e.MaxAttempts, e.Interruptions, e.Crashes, e.CancelRequested, e.Worker, e.ExpiredAt.UTC()})
		}
		m.own(j, e.Lease, before.worker, before.claimed, m.now+60)
	}
}

// park takes claimed jobs back, with other gates. Those that the first try has parked are lost
// for the second.
func (m *model) park(t *rapid.T) {
	chosen := m.someLeases(t)
	batch := make([]job.Parking, len(chosen))
	want := make([]job.SettleResult, len(chosen))
	for i, l := range chosen {
		batch[i] = job.Parking{Lease: l.Lease, Gates: someGates(t)}
		want[i] = m.expect(l, job.Queued)
	}
	var got []job.SettleResult
	repeated := m.again(t, "park", func(s *Store) (err error) {
		got, err = s.Park(m.ctx, batch)
		return err
	})
	for i, l := range chosen {
		if want[i] != job.Settled || !l.valid() {
			continue
		}
		if repeated {
			want[i] = job.Lost
		}
		j := l.of
		j.gates, j.lease, j.fence, j.updated = batch[i].Gates, nil, l.Fence, m.now
		m.queue(j)
		if j.expires != unset {
			j.expiry = j.expires
		}
	}
	require.Equal(m.t, want, got)
}

// replay uses every lease that is not valid any more once more, with every fenced verb. None
// is accepted; settlements that were written once are known as such.
func (m *model) replay() {
	var stale []*modelLease
	for _, l := range m.leases {
		if !l.valid() {
			stale = append(stale, l)
		}
	}
	if len(stale) == 0 {
		return
	}
	s := m.world.near
	leases, parkings, reports := make([]job.Lease, len(stale)), make([]job.Parking, len(stale)), make([]job.Report, len(stale))
	for i, l := range stale {
		leases[i], parkings[i] = l.Lease, job.Parking{Lease: l.Lease}
		reports[i] = job.Report{Lease: l.Lease, Progress: []byte(`"stale"`), Log: &job.AttemptLog{}}
	}
	refused := func(to job.State, settle func([]job.Settlement) ([]job.SettleResult, error)) {
		batch, want := make([]job.Settlement, len(stale)), make([]job.SettleResult, len(stale))
		for i, l := range stale {
			batch[i], want[i] = m.settlement(l, job.Outcome{Kind: job.Failure}), m.expect(l, to)
			batch[i].To = to
		}
		got, err := settle(batch)
		require.NoError(m.t, err)
		require.Equal(m.t, want, got)
	}
	for _, verb := range settleVerbs {
		refused(verb.to, func(batch []job.Settlement) ([]job.SettleResult, error) { return s.Settle(m.ctx, batch) })
	}
	refused(job.Succeeded, func(batch []job.Settlement) ([]job.SettleResult, error) {
		for i := range batch {
			batch[i].FollowUps = []job.Submission{{
				ID: m.id(), Type: jobType, Tenant: job.DefaultTenant, Payload: []byte(`{}`), MaxAttempts: 1, Timeout: time.Second,
			}}
		}
		results, _, err := s.SettleWithFollowUps(m.ctx, batch)
		return results, err
	})
	refused(job.Queued, func([]job.Settlement) ([]job.SettleResult, error) { return s.Park(m.ctx, parkings) })
	for _, name := range m.workers() {
		want := m.beat(name, stale, leases, nil)
		held, err := s.Renew(m.ctx, name, leases, nil, aMinute)
		require.NoError(m.t, err)
		require.ElementsMatch(m.t, want, held)
	}
	for _, save := range []func() ([]job.Lease, error){
		func() ([]job.Lease, error) { return s.SaveProgress(m.ctx, reports) },
		func() ([]job.Lease, error) { return s.SaveLogs(m.ctx, reports) },
	} {
		lost, err := save()
		require.NoError(m.t, err)
		require.ElementsMatch(m.t, leases, lost)
	}
}
