package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// unhinted hears no hints, and polls only as often as it must.
func unhinted(c *runtime.Config) { c.PollOnly, c.PollInterval = true, aLongTime }

func pause(t testing.TB, p *process, pause job.Pause) {
	t.Helper()
	_, err := p.SetPause(t.Context(), pause, 0)
	require.NoError(t, err)
}

func resume(t testing.TB, p *process, scope job.PauseScope, name string) {
	t.Helper()
	require.NoError(t, p.EndPause(t.Context(), scope, name))
}

func TestWhatIsPausedIsNotClaimedAndSubmissionGoesOn(t *testing.T) {
	for _, what := range []job.Pause{
		{Scope: job.PauseType, Name: echo}, {Scope: job.PausePlugin, Name: "p"}, {Scope: job.PauseAll},
	} {
		t.Run(what.Scope.Of(what.Name), func(t *testing.T) {
			db := fresh(t)
			first, second := supervise(t, playing("p", 1, succeeds, echo)), supervise(t, playing("p", 1, succeeds, echo))
			here, there := launch(t, db, first, unhinted), launch(t, db, second, unhinted)
			pause(t, here, what)
			paused := func() bool { _, paused := there.Rules().Stopped("p", echo); return paused }
			await(t, paused, "the other worker learns of it without hints")
			ids := many(t, db, 3)
			here.JobsReady()
			there.JobsReady()
			// A worker that starts now knows from the beginning.
			third := supervise(t, playing("p", 1, succeeds, echo))
			launch(t, db, third).JobsReady()
			asked := func(s *supervisor) int { s.mu.Lock(); defer s.mu.Unlock(); return s.asked }
			for _, s := range []*supervisor{first, second, third} {
				before := asked(s)
				await(t, func() bool { return asked(s) > before || asked(s) > 2 }, "the claimer has looked")
			}
			for _, s := range []*supervisor{first, second, third} {
				require.Empty(t, s.started())
			}
			require.Equal(t, 3, ask[int](t, db, "select count(*) from ready"))

			resume(t, here, what.Scope, what.Name)
			awaitAll(t, db, len(ids), job.Succeeded)
			requireSettled(t, db)
		})
	}
}

func TestOtherTypesOfAPluginGoOn(t *testing.T) {
	db := fresh(t)
	s := supervise(t, playing("p", 1, succeeds, echo, "OTHER"))
	p := launch(t, db, s)
	pause(t, p, job.Pause{Scope: job.PauseType, Name: echo})
	paused := given(t, db)
	other := given(t, db, func(j *job.Submission) { j.Type = "OTHER" })
	p.JobsReady()
	awaitState(t, db, other, job.Succeeded)
	require.Equal(t, job.Queued, view(t, db, paused).State)
}

func TestAJobThatIsPausedBetweenClaimAndStartIsReleasedUncharged(t *testing.T) {
	db := fresh(t)
	s := supervise(t, playing("p", 1, succeeds, echo))
	claimed := make(chan error)
	store := &hooked{Store: db.Store, claimed: func(err error) error {
		claimed <- err
		return <-claimed
	}}
	p := launch(t, store, s)
	id := given(t, db)
	p.JobsReady()
	for {
		err := <-claimed
		if ask[int](t, db, "select count(*) from leases") > 0 {
			require.NoError(t, err)
			break
		}
		claimed <- err
	}
	pause(t, p, job.Pause{Scope: job.PauseAll})
	claimed <- nil
	await(t, func() bool { return ask[int](t, db, "select count(*) from ready") == 1 }, "it is given back")
	require.Empty(t, s.started())
	require.Equal(t, []job.OutcomeKind{job.Released}, outcomes(t, db, id))
	require.Zero(t, charged(t, db, id))
	requireSettled(t, db)
}

func TestRunningJobsGoOnUnlessThePauseDrainsThem(t *testing.T) {
	for _, what := range []job.Pause{
		{Scope: job.PauseType, Name: echo}, {Scope: job.PausePlugin, Name: "p"}, {Scope: job.PauseAll},
	} {
		t.Run(what.Scope.Of(what.Name), func(t *testing.T) {
			db := fresh(t)
			id := given(t, db)
			s := supervise(t, playing("p", 1, inTurn(stops, succeeds), echo))
			here, there := launch(t, db, supervise(t), unhinted), launch(t, db, s, unhinted)
			r := awaitRun(t, s, 1)
			pause(t, here, what)
			await(t, func() bool { _, paused := there.Rules().Stopped("p", echo); return paused }, "it is paused")
			require.Equal(t, job.Running, view(t, db, id).State)
			require.Empty(t, r.told())

			what.Drain = true
			pause(t, here, what)
			awaitState(t, db, id, job.Queued)
			require.Equal(t, []job.CancelReason{job.CancelShutdown}, r.told())
			require.Equal(t, []job.OutcomeKind{job.Released}, outcomes(t, db, id))
			require.Zero(t, charged(t, db, id))
			requireSettled(t, db)

			resume(t, here, what.Scope, what.Name)
			awaitState(t, db, id, job.Succeeded)
		})
	}
}

func TestThePauseOfATenantDrainsItsJobsOnly(t *testing.T) {
	db := fresh(t)
	s := supervise(t, playing("p", 2, inTurn(stops, stops, succeeds), echo))
	mine := given(t, db, func(j *job.Submission) { j.Tenant = "mine" })
	given(t, db)
	p := launch(t, db, s, unhinted)
	awaitRun(t, s, 2)
	pause(t, p, job.Pause{Scope: job.PauseTenant, Name: "mine", Drain: true})
	await(t, func() bool { return len(outcomes(t, db, mine)) > 0 }, "it is given back")
	for _, r := range s.started()[:2] {
		if r.JobID == mine {
			require.Equal(t, []job.CancelReason{job.CancelShutdown}, r.told())
		} else {
			require.Empty(t, r.told())
		}
	}
	// Until it is parked, it may be claimed once more, which looks like an attempt.
	await(t, func() bool { return charged(t, db, mine) == 0 }, "it is not charged")
}

func conditionOf(t testing.TB, db *database, p *process) job.Condition {
	t.Helper()
	workers, err := db.Workers(t.Context())
	require.NoError(t, err)
	for _, w := range workers {
		if w.WorkerID == p.worker.ID {
			return w.Condition
		}
	}
	return ""
}

func TestAWorkerIsDrainedFromAfarAndResumed(t *testing.T) {
	db := fresh(t)
	done := make(chan struct{})
	s := supervise(t, playing("p", 1, inTurn(until(done), succeeds), echo))
	other := launch(t, db, supervise(t), unhinted)
	drained := launch(t, db, s, unhinted)
	first := given(t, db)
	drained.JobsReady()
	awaitRun(t, s, 1)
	require.NoError(t, other.DrainWorker(t.Context(), drained.worker.ID))
	require.NoError(t, other.DrainWorker(t.Context(), drained.worker.ID), "again")
	await(t, func() bool { return drained.Rules().Draining(drained.worker.ID) }, "it learns of it without hints")
	require.Equal(t, job.WorkerDraining, conditionOf(t, db, drained))
	late := given(t, db)
	drained.JobsReady()
	close(done)
	awaitState(t, db, first, job.Succeeded)
	await(t, func() bool { return conditionOf(t, db, drained) == job.WorkerDrained }, "it is drained")
	require.Equal(t, job.WorkerAlive, conditionOf(t, db, other))
	require.Equal(t, job.Queued, view(t, db, late).State)
	require.Empty(t, other.Rules().Pauses(), "a drain is no pause")

	require.NoError(t, other.ResumeWorker(t.Context(), drained.worker.ID))
	awaitState(t, db, late, job.Succeeded)
	require.Equal(t, job.WorkerAlive, conditionOf(t, db, drained))
	require.ErrorIs(t, other.DrainWorker(t.Context(), "nobody"), job.ErrNoWorker)
	require.ErrorIs(t, other.ResumeWorker(t.Context(), "nobody"), job.ErrNoWorker)
}

func TestADrainedWorkerGivesBackWhatDoesNotFinishInTime(t *testing.T) {
	db := fresh(t)
	s := supervise(t, playing("p", 1, stops, echo))
	p := launch(t, db, s, draining(10*time.Millisecond))
	id := given(t, db)
	p.JobsReady()
	r := awaitRun(t, s, 1)
	require.NoError(t, p.DrainWorker(t.Context(), p.worker.ID))
	await(t, func() bool { return conditionOf(t, db, p) == job.WorkerDrained }, "it is drained")
	require.Equal(t, []job.CancelReason{job.CancelShutdown}, r.told())
	require.Equal(t, job.Queued, view(t, db, id).State)
	require.Zero(t, charged(t, db, id))
	requireSettled(t, db)
}
