package job_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// doubling has no jitter, so that a decision's delay is exact.
var doubling = job.RetryPolicy{
	Backoff: job.Exponential, InitialDelay: time.Second, Factor: 2, MaxDelay: time.Minute,
	JitterMin: 1, JitterMax: 1,
}

func TestDecide(t *testing.T) {
	const soon, later = 3 * time.Second, 90 * time.Second
	first := job.History{Attempt: 1, MaxAttempts: 4, MaxCrashes: 3}
	third := job.History{Attempt: 3, MaxAttempts: 4, MaxCrashes: 3}
	last := job.History{Attempt: 4, MaxAttempts: 4, MaxCrashes: 3}
	worn := job.History{Attempt: 2, MaxAttempts: 4, MaxCrashes: 3, Interruptions: job.MaxInterruptions}
	wornOut := job.History{Attempt: 4, MaxAttempts: 4, MaxCrashes: 3, Interruptions: job.MaxInterruptions}
	suspect := job.History{Attempt: 1, MaxAttempts: 4, MaxCrashes: 3, Crashes: 1}
	guilty := job.History{Attempt: 2, MaxAttempts: 4, MaxCrashes: 3, Crashes: 2}
	delicate := job.History{Attempt: 1, MaxAttempts: 4, MaxCrashes: 1}

	cases := []struct {
		name    string
		at      job.History
		outcome job.Outcome
		want    job.Decision
	}{
		{"success", first, ended(job.Success), job.Decision{To: job.Succeeded, Kind: job.Success, Attempt: 1}},
		{"success at the last attempt", last, ended(job.Success), job.Decision{To: job.Succeeded, Kind: job.Success, Attempt: 4}},

		{"failure waits for the base first", first, ended(job.Failure), job.Decision{To: job.Retry, Kind: job.Failure, Delay: time.Second, Attempt: 1}},
		{"failure waits longer each time", third, ended(job.Failure), job.Decision{To: job.Retry, Kind: job.Failure, Delay: 4 * time.Second, Attempt: 3}},
		{"failure with a wish", third, wishing(job.Failure, later), job.Decision{To: job.Retry, Kind: job.Failure, Delay: later, Attempt: 3}},
		{"failure with a wish from the past", third, wishing(job.Failure, -later), job.Decision{To: job.Retry, Kind: job.Failure, Attempt: 3}},
		{"failure at the last attempt", last, ended(job.Failure), job.Decision{To: job.Dead, Kind: job.Failure, Attempt: 4}},
		{"a wish buys no further attempt", last, wishing(job.Failure, soon), job.Decision{To: job.Dead, Kind: job.Failure, Attempt: 4}},

		{"timeout", first, ended(job.Timeout), job.Decision{To: job.Retry, Kind: job.Timeout, Delay: time.Second, Attempt: 1}},
		{"timeout at the last attempt", last, ended(job.Timeout), job.Decision{To: job.Dead, Kind: job.Timeout, Attempt: 4}},
		{"crash", first, ended(job.Crash), job.Decision{To: job.Retry, Kind: job.Crash, Delay: time.Second, Attempt: 1, Crashes: 1}},
		{"crash at the last attempt", last, ended(job.Crash), job.Decision{To: job.Dead, Kind: job.Crash, Attempt: 4, Crashes: 1}},
		{"crash where none is borne", delicate, ended(job.Crash), job.Decision{To: job.Dead, Kind: job.Crash, Attempt: 1, Crashes: 1}},
		{"crash with others", first, together(49), job.Decision{To: job.Queued, Kind: job.Suspect, Crashes: 1}},
		{"crash with others at the last attempt", last, together(1), job.Decision{To: job.Queued, Kind: job.Suspect, Attempt: 3, Crashes: 1}},
		{"crash with others where none is borne", delicate, together(1), job.Decision{To: job.Queued, Kind: job.Suspect, Crashes: 1}},
		{"crash of a suspect alone", suspect, ended(job.Crash), job.Decision{To: job.Retry, Kind: job.Crash, Delay: time.Second, Attempt: 1, Crashes: 2}},
		{"crash of a suspect that was not alone after all", suspect, together(1), job.Decision{To: job.Retry, Kind: job.Crash, Delay: time.Second, Attempt: 1, Crashes: 2}},
		{"crash too often", guilty, ended(job.Crash), job.Decision{To: job.Dead, Kind: job.Crash, Attempt: 2, Crashes: 3}},
		{"a success clears a suspect", suspect, ended(job.Success), job.Decision{To: job.Succeeded, Kind: job.Success, Attempt: 1}},
		{"so does a failure", guilty, ended(job.Failure), job.Decision{To: job.Retry, Kind: job.Failure, Delay: 2 * time.Second, Attempt: 2}},
		{"so does a timeout", guilty, ended(job.Timeout), job.Decision{To: job.Retry, Kind: job.Timeout, Delay: 2 * time.Second, Attempt: 2}},
		{"not one before any process was up", guilty, job.Outcome{Kind: job.Timeout, Code: job.CodeNoProcess}, job.Decision{To: job.Retry, Kind: job.Timeout, Delay: 2 * time.Second, Attempt: 2, Crashes: 2}},
		{"a timeout that took a kill has the next attempt run alone", first, killed(), job.Decision{To: job.Retry, Kind: job.Timeout, Delay: time.Second, Attempt: 1, Crashes: 1}},
		{"and does not clear a suspect", guilty, killed(), job.Decision{To: job.Retry, Kind: job.Timeout, Delay: 2 * time.Second, Attempt: 2, Crashes: 3}},
		{"a timeout that took a kill at the last attempt", last, killed(), job.Decision{To: job.Dead, Kind: job.Timeout, Attempt: 4, Crashes: 1}},
		{"so does a snooze", guilty, wishing(job.Snoozed, soon), job.Decision{To: job.Retry, Kind: job.Snoozed, Delay: soon, Attempt: 1}},
		{"a suspect that is given back stays one", guilty, ended(job.Released), job.Decision{To: job.Queued, Kind: job.Released, Attempt: 1, Crashes: 2}},
		{"a suspect that is interrupted stays one", suspect, ended(job.Interrupted), job.Decision{To: job.Queued, Kind: job.Interrupted, Interruptions: 1, Crashes: 1}},
		{"a suspect whose lease expires stays one", suspect, ended(job.LeaseExpired), job.Decision{To: job.Retry, Kind: job.LeaseExpired, Delay: time.Second, Attempt: 1, Crashes: 1}},
		{"lease expired", first, ended(job.LeaseExpired), job.Decision{To: job.Retry, Kind: job.LeaseExpired, Delay: time.Second, Attempt: 1}},
		{"lease expired at the last attempt", last, ended(job.LeaseExpired), job.Decision{To: job.Dead, Kind: job.LeaseExpired, Attempt: 4}},

		{"permanent failure", first, ended(job.PermanentFailure), job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}},
		{"permanent failure with a wish", first, wishing(job.PermanentFailure, soon), job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}},

		{"given back", first, ended(job.Released), job.Decision{To: job.Queued, Kind: job.Released}},
		{"given back at the last attempt", last, ended(job.Released), job.Decision{To: job.Queued, Kind: job.Released, Attempt: 3}},
		{"given back for a while", third, wishing(job.Released, later), job.Decision{To: job.Retry, Kind: job.Released, Delay: later, Attempt: 2}},
		{"snoozed for as long as asked", third, wishing(job.Snoozed, later), job.Decision{To: job.Retry, Kind: job.Snoozed, Delay: later, Attempt: 2}},
		{"snoozed without a wish", third, ended(job.Snoozed), job.Decision{To: job.Retry, Kind: job.Snoozed, Delay: time.Second, Attempt: 2}},
		{"snoozed at the last attempt", last, wishing(job.Snoozed, soon), job.Decision{To: job.Retry, Kind: job.Snoozed, Delay: soon, Attempt: 3}},

		{"interrupted", third, ended(job.Interrupted), job.Decision{To: job.Queued, Kind: job.Interrupted, Attempt: 2, Interruptions: 1}},
		{"interrupted at the last attempt", last, ended(job.Interrupted), job.Decision{To: job.Queued, Kind: job.Interrupted, Attempt: 3, Interruptions: 1}},
		{"interrupted once too often", worn, ended(job.Interrupted), job.Decision{To: job.Retry, Kind: job.Interrupted, Delay: 2 * time.Second, Attempt: 2, Interruptions: job.MaxInterruptions}},
		{"interrupted once too often at the last attempt", wornOut, ended(job.Interrupted), job.Decision{To: job.Dead, Kind: job.Interrupted, Attempt: 4, Interruptions: job.MaxInterruptions}},
		{"a failure leaves the interruptions alone", worn, ended(job.Failure), job.Decision{To: job.Retry, Kind: job.Failure, Delay: 2 * time.Second, Attempt: 2, Interruptions: job.MaxInterruptions}},

		{"cancel confirmed", third, ended(job.CancelConfirmed), job.Decision{To: job.Canceled, Kind: job.CancelConfirmed, Attempt: 3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, job.Decide(doubling, c.at, c.outcome, 0.5))
		})
	}
}

func TestARequestedCancelTurnsEveryOutcomeButSuccessIntoACancel(t *testing.T) {
	for _, kind := range job.OutcomeKinds() {
		for _, at := range histories() {
			at.CancelRequested = true
			want := job.Decision{To: job.Canceled, Kind: job.CancelConfirmed, Attempt: at.Attempt, Interruptions: at.Interruptions}
			if kind == job.Success {
				want.To, want.Kind = job.Succeeded, job.Success
			}
			got := job.Decide(doubling, at, wishing(kind, time.Second), 0.5)
			got.Crashes = 0
			require.Equal(t, want, got, "%s at %+v", kind, at)
		}
	}
}

func TestOnlyATimeoutIsRetriedAtOnceWhereThePolicySaysSo(t *testing.T) {
	policy := doubling
	policy.ImmediateAfterTimeout = true
	for _, kind := range []job.OutcomeKind{job.Failure, job.Timeout, job.Crash, job.LeaseExpired} {
		decision := job.Decide(policy, job.History{Attempt: 2, MaxAttempts: 4, MaxCrashes: 3}, ended(kind), 0.5)
		require.Equal(t, job.Retry, decision.To, kind)
		if kind == job.Timeout {
			require.Zero(t, decision.Delay, kind)
		} else {
			require.Equal(t, 2*time.Second, decision.Delay, kind)
		}
	}
}

func TestEveryDecisionKeepsTheRules(t *testing.T) {
	for _, kind := range job.OutcomeKinds() {
		for _, at := range histories() {
			for _, outcome := range []job.Outcome{ended(kind), {Kind: kind, CoResidents: 1}} {
				requireRules(t, at, outcome, job.Decide(doubling, at, outcome, 0.5))
			}
		}
	}
}

// Whatever befalls a job, as long as neither its handler nor its worker asks for
// another attempt, it comes to its end within so many.
func TestNoJobIsTriedForever(t *testing.T) {
	blows := []job.Outcome{ended(job.Failure), ended(job.Crash), together(3), ended(job.Interrupted), ended(job.LeaseExpired), ended(job.Timeout), killed()}
	const most = 3
	// An attempt that is not charged is an interruption or a first crash with
	// others; before the next such crash something is charged.
	const longest = most + job.MaxInterruptions + most
	var blow func(at job.History, attempts int)
	seen := make(map[job.History]int)
	blow = func(at job.History, attempts int) {
		require.LessOrEqual(t, attempts, longest, "%+v", at)
		if seen[at] >= attempts {
			return
		}
		seen[at] = attempts
		for _, outcome := range blows {
			d := job.Decide(doubling, at, outcome, 0)
			if !d.To.Final() {
				next := at
				next.Attempt, next.Interruptions, next.Crashes = d.Attempt+1, d.Interruptions, d.Crashes
				blow(next, attempts+1)
			}
		}
	}
	blow(job.History{Attempt: 1, MaxAttempts: most, MaxCrashes: 2}, 1)
}

func TestTheReasonSaysHowOftenProcessesDied(t *testing.T) {
	const words = "plugin p, pid 7: signal: killed"
	at := job.History{Attempt: 1, MaxAttempts: 4, MaxCrashes: 3}
	reason := func(crashes, company int) string {
		at.Crashes = crashes
		outcome := job.Outcome{Kind: job.Crash, CoResidents: company, Message: words}
		return job.Decide(doubling, at, outcome, 0).Reason(outcome)
	}
	require.Equal(t, words, reason(0, 0))
	require.Equal(t, "its handler's process died with 49 other attempts in it: "+words, reason(0, 49))
	require.Equal(t, "its handler's process died with another attempt in it: "+words, reason(0, 1))
	require.Equal(t, words, reason(1, 0))
	require.Equal(t, "its handler's process died 3 times under it, the last time alone: "+words, reason(2, 0))
	require.Equal(t, "its handler's process died 3 times under it: "+words, reason(2, 1))
	at.MaxCrashes = 1
	require.Equal(t, words, reason(0, 0))
	require.Equal(t, "it broke", job.Decision{To: job.Dead, Kind: job.Failure}.Reason(job.Outcome{Kind: job.Failure, Message: "it broke"}))
}

func FuzzDecide(f *testing.F) {
	for i := range job.OutcomeKinds() {
		f.Add(i, 1, 4, 0, 0, 0, false, false, int64(0), 0.5)
		f.Add(i, math.MaxInt32, math.MaxInt32, math.MaxInt32, math.MaxInt16, 1, true, true, int64(math.MinInt64), 0.0)
	}
	f.Fuzz(func(t *testing.T, kind, attempt, most, interruptions, crashes, company int, cancel, wish bool, after int64, jitter float64) {
		kinds := job.OutcomeKinds()
		outcome := ended(kinds[int(uint(kind)%uint(len(kinds)))])
		if wish {
			outcome.RetryAfter = new(time.Duration(after))
		}
		outcome.CoResidents = max(0, company)
		at := job.History{
			MaxAttempts: max(1, most), Interruptions: max(0, interruptions), CancelRequested: cancel,
			MaxCrashes: 3, Crashes: min(max(0, crashes), math.MaxInt16),
		}
		at.Attempt = min(max(1, attempt), at.MaxAttempts)
		if math.IsNaN(jitter) || jitter < 0 || jitter >= 1 {
			jitter = 0.5
		}
		requireRules(t, at, outcome, job.Decide(job.DefaultRetryPolicy(), at, outcome, jitter))
	})
}

// requireRules checks what holds for every decision, whatever the policy.
func requireRules(t *testing.T, at job.History, outcome job.Outcome, d job.Decision) {
	t.Helper()
	told := []any{"%s at %+v gave %+v", outcome.Kind, at, d}
	require.True(t, job.Running.CanBecome(d.To), told...)
	require.GreaterOrEqual(t, d.Delay, time.Duration(0), told...)
	if d.To != job.Retry {
		require.Zero(t, d.Delay, told...)
	}
	if d.To == job.Retry || d.To == job.Queued {
		// The database refuses a waiting job that has no attempt left.
		require.Less(t, d.Attempt, at.MaxAttempts, told...)
	}
	require.GreaterOrEqual(t, d.Attempt, 0, told...)
	require.LessOrEqual(t, d.Attempt, at.Attempt, told...)
	require.GreaterOrEqual(t, d.Attempt, at.Attempt-1, told...)
	require.GreaterOrEqual(t, d.Interruptions, at.Interruptions, told...)
	require.LessOrEqual(t, d.Interruptions, max(at.Interruptions, job.MaxInterruptions), told...)
	require.Contains(t, []int{0, at.Crashes, at.Crashes + 1}, d.Crashes, told...)
	if d.Kind == job.Crash && (d.To == job.Retry || d.To == job.Queued) {
		require.Less(t, d.Crashes, at.MaxCrashes, told...)
	}
	require.Equal(t, outcome.Kind == job.Success, d.To == job.Succeeded, told...)
	if at.CancelRequested && outcome.Kind != job.Success {
		require.Equal(t, job.Canceled, d.To, told...)
	}
}

// standings are those an attempt can end in.
func histories() []job.History {
	var all []job.History
	for most := 1; most <= 3; most++ {
		for attempt := 1; attempt <= most; attempt++ {
			for interruptions := range job.MaxInterruptions + 2 {
				for crashes := range 3 {
					all = append(all, job.History{
						Attempt: attempt, MaxAttempts: most, Interruptions: interruptions, Crashes: crashes, MaxCrashes: 3,
					})
				}
			}
		}
	}
	return all
}

func ended(kind job.OutcomeKind) job.Outcome { return job.Outcome{Kind: kind} }

// killed is the end of an attempt that had to be killed after its time.
func killed() job.Outcome { return job.Outcome{Kind: job.Timeout, Killed: true} }

// together is the end of an attempt whose process died with others in it.
func together(company int) job.Outcome { return job.Outcome{Kind: job.Crash, CoResidents: company} }

func wishing(kind job.OutcomeKind, after time.Duration) job.Outcome {
	return job.Outcome{Kind: kind, RetryAfter: &after}
}
