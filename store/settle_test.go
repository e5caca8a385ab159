package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestEveryOutcomeEndsTheAttemptAndMovesTheJob(t *testing.T) {
	s := open(t)
	for _, kind := range job.OutcomeKinds() {
		t.Run(string(kind), func(t *testing.T) {
			c := running(t, s)
			settlement := as(c, kind)
			if kind == job.Success {
				settlement.Result = json.RawMessage(`{ "sum" : 1.0 }`)
			}
			require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
			requireState(t, s, c.JobID, settlement.To)

			view := get(t, s, c.JobID)
			require.Equal(t, settlement.To.Final(), view.FinishedAt != nil)
			require.Equal(t, string(settlement.Result), string(view.Result))
			require.Equal(t, settlement.Attempt, ask[int](t, s, "select attempt from jobs where job_id = $1", postgres.UUID(c.JobID)))
			require.Equal(t, settlement.Interruptions, ask[int](t, s, "select interruptions from jobs where job_id = $1", postgres.UUID(c.JobID)))
			require.Equal(t, settlement.Crashes, ask[int](t, s, "select crashes from jobs where job_id = $1", postgres.UUID(c.JobID)))
			require.Equal(t, settlement.Error, ask[string](t, s, "select coalesce(last_error, '') from jobs where job_id = $1", postgres.UUID(c.JobID)))

			attempts := detail(t, s, c.JobID).Attempts
			require.Len(t, attempts, 1)
			a := attempts[0]
			require.Equal(t, *view.StartedAt, a.ClaimedAt)
			require.False(t, a.EndedAt.Before(a.ClaimedAt))
			require.WithinDuration(t, c.RunAt, *a.DueAt, 0)
			a.DueAt, a.ClaimedAt, a.EndedAt = nil, time.Time{}, time.Time{}
			require.Equal(t, job.Attempt{
				Fence: 1, Number: 1, WorkerID: worker, Plugin: "plugin", PluginVersion: "v1", Outcome: kind,
				Code: settlement.Code, Error: settlement.Error, Stack: settlement.Stack, SpanID: settlement.SpanID,
			}, a)
			exec(t, s, "delete from ready")
			exec(t, s, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
		})
	}
}

// Claims and reaps return how many processes have died under the job since an attempt
// last ended in another way.
func TestCrashesAreCountedUntilAnAttemptEndsOtherwise(t *testing.T) {
	s := open(t)
	c := running(t, s)
	crashed := as(c, job.Crash)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, crashed))
	require.Equal(t, 1, ask[int](t, s, "select crashes from current_jobs"))
	due := func() job.Claimed {
		t.Helper()
		exec(t, s, "update timers set run_at = now()")
		exec(t, s, "update jobs set run_at = t.run_at from timers t where t.job_id = jobs.job_id")
		_, err := s.Promote(t.Context(), 10)
		require.NoError(t, err)
		s.marks = newLowWaterMarks()
		return claim(t, s, 1)[0]
	}
	c = due()
	require.Equal(t, 1, c.Crashes)
	expire(t, s, c.Lease)
	taken := reap(t, s, 1)[0]
	require.Equal(t, 1, taken.Crashes)
	c.Lease = taken.Lease
	settled(t, s, c, job.LeaseExpired)
	c = due()
	require.Equal(t, 1, c.Crashes, "an expired lease says nothing about the job")
	settled(t, s, c, job.Failure)
	c = due()
	require.Zero(t, c.Crashes)
	require.Zero(t, ask[int](t, s, "select crashes from jobs"))
	settled(t, s, c, job.Crash)
	require.Equal(t, job.Dead, get(t, s, c.JobID).State)
	detail, err := s.Detail(t.Context(), c.JobID)
	require.NoError(t, err)
	require.Equal(t, 1, detail.Crashes)
	requireSound(t, s)
}

func TestASnoozedJobHasNotFailed(t *testing.T) {
	s := open(t)
	c := running(t, s)
	at := job.History{Attempt: 1, MaxAttempts: 4, MaxCrashes: 3, Crashes: 1}
	later := aMinute
	decision := job.Decide(atOnce, at, job.Outcome{Kind: job.Released, RetryAfter: &later}, 0)
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, job.Settlement{Lease: c.Lease, Decision: decision, Number: 1}))
	requireState(t, s, c.JobID, job.Retry)
	require.Equal(t, 1, ask[int](t, s, "select crashes from jobs where attempt = 0"))
	require.Zero(t, ask[int](t, s, "select count(*) from tallies where event = 'failed'"))
}

func TestARetryIsDueAfterItsDelayByTheDatabasesClock(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settlement := as(c, job.Failure)
	settlement.Delay = 90 * time.Second
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	require.True(t, ask[bool](t, s, "select run_at = updated_at + interval '90 seconds' from jobs"))
	promoted, err := s.Promote(t.Context(), 10)
	require.NoError(t, err)
	require.Zero(t, promoted)
	requireSound(t, s)
}

func TestASuccessClearsTheLastErrorAndTheCheckpoint(t *testing.T) {
	s := open(t)
	c := running(t, s)
	_, err := s.SaveProgress(t.Context(), []job.Report{{Lease: c.Lease, Checkpoint: json.RawMessage(`7`)}})
	require.NoError(t, err)
	settled(t, s, c, job.Released)
	s.marks = newLowWaterMarks()
	settled(t, s, claim(t, s, 1)[0], job.Success)
	require.True(t, ask[bool](t, s, "select last_error is null and checkpoint is null from jobs"))
	require.Equal(t, 2, ask[int](t, s, "select count(*) from job_attempts"))
}

func TestSettlingTwiceIsSettlingOnce(t *testing.T) {
	s := open(t)
	for _, kind := range job.OutcomeKinds() {
		c := running(t, s)
		settled(t, s, c, kind)
		before := row(t, s, c.JobID)
		settled(t, s, c, kind)
		settled(t, s, c, job.Success)
		require.Equal(t, before, row(t, s, c.JobID), kind)
		exec(t, s, "delete from ready")
		exec(t, s, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
	}
	requireSound(t, s)
}

// A worker that stopped for longer than its lease and then continues changes nothing,
// whatever it writes.
func TestAStaleOwnerIsLostWhateverItSays(t *testing.T) {
	s := open(t)
	stale := running(t, s)
	expire(t, s, stale.Lease)
	taken := reap(t, s, 1)[0]
	current := stale
	current.Lease = taken.Lease
	settled(t, s, current, job.Interrupted)
	s.marks = newLowWaterMarks()
	current = claim(t, s, 1)[0]
	require.Equal(t, stale.JobID, current.JobID)
	before := row(t, s, stale.JobID)
	for _, kind := range job.OutcomeKinds() {
		require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(stale, kind)), kind)
	}
	require.Equal(t, before, row(t, s, stale.JobID))
	settled(t, s, current, job.Success)
	requireState(t, s, stale.JobID, job.Succeeded)
}

func TestAStaleAndACurrentOwnerInOneBatchAreDistinguished(t *testing.T) {
	s := open(t)
	for _, kind := range job.OutcomeKinds() {
		stale := running(t, s)
		expire(t, s, stale.Lease)
		current := stale
		current.Lease = reap(t, s, 1)[0].Lease
		require.Equal(t, []job.SettleResult{job.Lost, job.Settled}, settle(t, s, as(stale, kind), as(current, kind)), kind)
		exec(t, s, "delete from ready")
		exec(t, s, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
	}
	requireSound(t, s)
}

func TestAJobThatNeverExistedIsLost(t *testing.T) {
	s := open(t)
	c := running(t, s)
	c.JobID = newID(t)
	require.Equal(t, []job.SettleResult{job.Lost}, settle(t, s, as(c, job.Success)))
	require.Empty(t, settle(t, s))
}

func TestACancelThatCameInBetweenTurnsAllButASuccessAside(t *testing.T) {
	s := open(t)
	for kind, fate := range map[job.OutcomeKind]job.SettleResult{
		job.Success:          job.Settled,
		job.PermanentFailure: job.Canceling,
		job.CancelConfirmed:  job.Settled,
		job.Failure:          job.Canceling,
		job.Timeout:          job.Canceling,
		job.Snoozed:          job.Canceling,
		job.Released:         job.Canceling,
		job.Interrupted:      job.Canceling,
	} {
		t.Run(string(kind), func(t *testing.T) {
			c := running(t, s)
			_, err := s.Cancel(t.Context(), c.JobID)
			require.NoError(t, err)
			before := row(t, s, c.JobID)
			require.Equal(t, []job.SettleResult{fate}, settle(t, s, as(c, kind)))
			if fate == job.Canceling {
				require.Equal(t, before, row(t, s, c.JobID))
				settled(t, s, c, job.CancelConfirmed)
				requireState(t, s, c.JobID, job.Canceled)
			}
		})
	}
}

func TestAMixedBatchIsAnsweredInTheOrderGiven(t *testing.T) {
	s := open(t)
	var batch []job.Settlement
	var want []job.SettleResult
	canceling, lost := running(t, s), running(t, s)
	_, err := s.Cancel(t.Context(), canceling.JobID)
	require.NoError(t, err)
	settled(t, s, lost, job.PermanentFailure)
	lost.ID = job.LeaseID(newID(t))
	for round := range 3 {
		for _, kind := range job.OutcomeKinds() {
			if to := as(job.Claimed{Attempt: 1, MaxAttempts: 2}, kind).To; round > 0 && to == job.Queued {
				continue
			}
			c := claimFresh(t, s)
			batch, want = append(batch, as(c, kind)), append(want, job.Settled)
		}
		batch, want = append(batch, as(canceling, job.Failure)), append(want, job.Canceling)
		batch, want = append(batch, as(lost, job.Success)), append(want, job.Lost)
	}
	require.Equal(t, want, settle(t, s, batch...))
	requireSound(t, s)
}

func TestARunningJobCannotBecomeWhatNoAttemptLeadsTo(t *testing.T) {
	s := open(t)
	c := running(t, s)
	for _, to := range []job.State{job.Created, job.Running, "paused"} {
		settlement := as(c, job.Failure)
		settlement.To = to
		_, err := s.Settle(t.Context(), []job.Settlement{settlement})
		require.ErrorContains(t, err, string(to))
	}
	requireState(t, s, c.JobID, job.Running)
}

func TestAValueThatCannotBeStoredIsRefusedAlone(t *testing.T) {
	s := open(t)
	spoilt := map[string]func(*job.Settlement){
		"result that is no JSON":        func(j *job.Settlement) { j.Result = json.RawMessage(`{"a":`) },
		"result with a NUL byte":        func(j *job.Settlement) { j.Result = json.RawMessage("\"\x00\"") },
		"result that is no UTF-8":       func(j *job.Settlement) { j.Result = json.RawMessage("\"\xff\"") },
		"result with a raw surrogate":   func(j *job.Settlement) { j.Result = json.RawMessage("\"\xed\xa0\x80\"") },
		"span that is no UTF-8":         func(j *job.Settlement) { j.SpanID = "\xff" },
		"error with a NUL":              func(j *job.Settlement) { j.Error = "it broke: \x00" },
		"error that is no UTF-8":        func(j *job.Settlement) { j.Error = "it broke: \xff" },
		"error with a raw surrogate":    func(j *job.Settlement) { j.Error = "\xed\xa0\x80" },
		"stack with a NUL":              func(j *job.Settlement) { j.Stack = "\x00" },
		"code that is no UTF-8":         func(j *job.Settlement) { j.Code = "\xc3\x28" },
		"outcome that there is not":     func(j *job.Settlement) { j.Kind = "exploded" },
		"retry with no attempt left":    func(j *job.Settlement) { j.Attempt = 4 },
		"retry past the end of time":    func(j *job.Settlement) { j.Delay = 292 * 365 * 24 * time.Hour },
		"interruptions below none":      func(j *job.Settlement) { j.Interruptions = -1 },
		"crashes below none":            func(j *job.Settlement) { j.Crashes = -1 },
		"a lone surrogate, written out": func(j *job.Settlement) { j.Result = json.RawMessage(`"\ud800 \u0000"`) },
	}
	fine := map[string]bool{"a lone surrogate, written out": true, "retry past the end of time": true}
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			kind := job.Failure
			var probe job.Settlement
			if spoil(&probe); probe.Result != nil || probe.SpanID != "" {
				kind = job.Success
			}
			var batch []job.Settlement
			for range 20 {
				batch = append(batch, as(claimFresh(t, s), kind))
			}
			spoil(&batch[13])
			fates := settle(t, s, batch...)
			for i, fate := range fates {
				if i == 13 && !fine[name] {
					require.Equal(t, job.Refused, fate)
					requireState(t, s, batch[i].JobID, job.Running)
					continue
				}
				require.Equal(t, job.Settled, fate)
			}
			if !fine[name] {
				// The rest can be settled, so no failure repeats forever.
				plain := as(job.Claimed{Lease: batch[13].Lease, Attempt: 1, MaxAttempts: 4}, job.PermanentFailure)
				require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, plain))
			}
			requireSound(t, s)
		})
	}
}

func FuzzAnErrorIsStoredToTheLetterOrRefused(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x00", "\xff", "\xed\xa0\x80", "\ufffd", "\U0010ffff", "'; drop table jobs; --"} {
		f.Add(seed, seed)
	}
	s := open(f)
	f.Fuzz(func(t *testing.T, message, stack string) {
		bad, good := as(claimFresh(t, s), job.Failure), as(claimFresh(t, s), job.Failure)
		bad.Error, bad.Stack = message, stack
		fates := settle(t, s, bad, good)
		require.Equal(t, job.Settled, fates[1], "its neighbour")
		if fates[0] == job.Refused {
			bad.Error, bad.Stack = "", ""
			require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, bad))
			return
		}
		require.Equal(t, message+"|"+stack, ask[string](t, s,
			"select concat(error, '|', stack) from job_attempts where lease_id = $1", postgres.UUID(bad.ID)))
	})
}

// claimFresh submits and claims a job, whatever else is queued.
func claimFresh(t testing.TB, s *Store) job.Claimed {
	t.Helper()
	kind := newID(t).String()
	id := given(t, s, func(j *job.Submission) { j.Type = kind })
	claimed, err := s.Claim(t.Context(), worker, []string{kind}, 1, aMinute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].JobID)
	return claimed[0]
}
