package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// beginIsolated starts an isolated attempt as soon as there is room.
func (h *testHost) beginIsolated(name, payload string) (job.Run, *report) {
	h.t.Helper()
	a, r := assignment(payload), newReport()
	a.Isolated = true
	var run job.Run
	h.eventually(func() bool {
		var err error
		run, err = h.Start(name, a, r)
		return err == nil
	}, "an attempt of "+name+" may run isolated")
	return run, r
}

func (h *testHost) freeIsolated(name string) int {
	for _, pool := range h.Pools() {
		if pool.Plugin == name {
			return pool.FreeIsolated
		}
	}
	return 0
}

// identity is what an attempt reports about its process and lease.
type identity struct {
	PID     int
	LeaseMS int
}

func identityOf(t *testing.T, outcome job.Outcome) identity {
	t.Helper()
	var who identity
	require.NoError(t, json.Unmarshal(outcome.Result, &who), outcome.Message)
	return who
}

func TestAnIsolatedAttemptHasAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	shared := h.status("good").PIDs[0]
	_, r := h.beginIsolated("good", do("identity"))
	who := identityOf(t, h.outcome(r))
	require.NotEqual(t, shared, who.PID)
	require.Equal(t, shared, identityOf(t, h.run("good", do("identity"))).PID)
	h.eventually(func() bool { return !alive(who.PID) && h.freeIsolated("good") == initiallyIsolated }, "its process is gone")
	require.Equal(t, []int{shared}, h.status("good").PIDs)
	require.Zero(t, h.status("good").Restarts)
}

func TestAFewAttemptsRunIsolatedAndTakeNoSlots(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	require.Equal(t, initiallyIsolated, h.freeIsolated("good"))
	var runs []job.Run
	var reports []*report
	for range initiallyIsolated {
		run, r := h.beginIsolated("good", `{"do":"sleep","ms":60000}`)
		runs, reports = append(runs, run), append(reports, r)
	}
	require.Zero(t, h.freeIsolated("good"))
	require.Equal(t, initiallyIsolated, h.status("good").Isolated)
	require.Equal(t, DefaultConcurrency, h.free("good"))
	one := assignment(`{}`)
	one.Isolated = true
	_, err := h.Start("good", one, newReport())
	require.ErrorIs(t, err, ErrNoSlot)
	for i, run := range runs {
		run.Cancel(job.CancelRequested)
		require.Equal(t, job.CancelConfirmed, h.outcome(reports[i]).Kind)
	}
	h.eventually(func() bool { return h.freeIsolated("good") == initiallyIsolated }, "the places are free again")
}

func TestAnIsolatedCrashHarmsNoOtherAttempt(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	_, bystander := h.begin("good", `{"do":"sleep","ms":60000}`)
	for range 4 { // more than break a plugin
		_, r := h.beginIsolated("good", do("exit"))
		outcome := h.outcome(r)
		require.Equal(t, job.Crash, outcome.Kind)
		require.Zero(t, outcome.CoResidents)
		require.Contains(t, outcome.Message, "exit status 3")
	}
	require.Empty(t, bystander.done)
	h.eventually(func() bool { return h.status("good").Crashes == 4 }, "the crashes are counted")
	require.False(t, h.fleet("good").current.breaker.broken())
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
}

func TestACrashCountsItsCoResidents(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	_, first := h.begin("good", `{"do":"sleep","ms":60000}`)
	_, second := h.begin("good", `{"do":"sleep","ms":60000}`)
	require.Equal(t, 2, h.run("good", do("exit")).CoResidents)
	require.Equal(t, 2, h.outcome(first).CoResidents)
	require.Equal(t, 2, h.outcome(second).CoResidents)
	require.Zero(t, h.run("good", do("exit")).CoResidents)

	run, killed := h.begin("good", do("ignore"))
	_, bystander := h.begin("good", `{"do":"sleep","ms":60000}`)
	run.Kill()
	outcome := h.outcome(killed)
	require.Equal(t, job.Crash, outcome.Kind)
	require.Zero(t, outcome.CoResidents, "it is known whose fault it was")
	require.True(t, outcome.Killed)
	require.Equal(t, job.Released, h.outcome(bystander).Kind)
}

func TestCancelsAndLeasesBeforeAnIsolatedProcessIsUpCount(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("slow", "-mode", "slow"))
	h.awaitUp("slow", 1)
	for reason, want := range map[job.CancelReason]job.OutcomeKind{
		job.CancelRequested: job.CancelConfirmed,
		job.CancelTimeout:   job.Released,
		job.CancelShutdown:  job.Released,
		job.CancelLeaseLost: job.Released,
	} {
		run, r := h.beginIsolated("slow", do("ignore"))
		run.Cancel(reason)
		run.Kill()
		require.Equal(t, want, h.outcome(r).Kind, reason)
		require.EqualValues(t, 1, r.finished.Load())
		require.Zero(t, r.begun.Load())
	}
	require.Zero(t, h.status("slow").Restarts, "a launch that is not needed any more is no failure")

	a, r := assignment(do("identity")), newReport()
	a.Isolated, a.LeaseFor = true, 10*time.Millisecond
	h.eventually(func() bool { return h.freeIsolated("slow") == initiallyIsolated }, "the places are free again")
	run, err := h.Start("slow", a, r)
	require.NoError(t, err)
	run.Extend(time.Minute)
	who := identityOf(t, h.outcome(r))
	require.Greater(t, who.LeaseMS, 30_000)
	require.Less(t, who.LeaseMS, 60_000, "the launch took some of it")
	require.EqualValues(t, 1, r.begun.Load())
}

func TestAnAttemptWithoutAProcessIsReleased(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := misbehaving("spent")
	config.Path = filepath.Join(dir, "plugin")
	require.NoError(t, os.WriteFile(config.Path, []byte("#!/bin/sh\n[ -e "+dir+"/spent ] && exit 9\nexec "+hostile+"\n"), 0o755))
	h := startHost(t, nil, config)
	h.awaitUp("spent", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spent"), nil, 0o600))
	_, r := h.beginIsolated("spent", `{}`)
	outcome := h.outcome(r)
	require.Equal(t, job.Released, outcome.Kind)
	require.Equal(t, job.CodeNoProcess, outcome.Code)
	require.Contains(t, outcome.Message, "it ended during its start: exit status 9")
	require.Equal(t, 1, h.status("spent").Restarts)
	require.Contains(t, h.status("spent").LastError, "exit status 9")
	require.Equal(t, job.Success, h.run("spent", `{}`).Kind)
}

func TestCloseWaitsForIsolatedAttempts(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"), misbehaving("slow", "-mode", "slow", "-types", "OTHER"))
	_, finishes := h.beginIsolated("good", `{"do":"sleep","ms":300}`)
	h.awaitUp("slow", 1)
	_, hangs := h.beginIsolated("good", do("ignore-with-child"))
	h.progress(hangs)
	_, starts := h.beginIsolated("slow", `{}`) // last, or its process is up too soon
	h.closeWithin(2 * time.Second)
	for r, want := range map[*report]job.OutcomeKind{finishes: job.Success, starts: job.Released, hangs: job.Released} {
		require.EqualValues(t, 1, r.finished.Load())
		require.Equal(t, want, (<-r.done).Kind)
	}
}

// stingy is a version of a plugin that cannot start more processes while it is spent,
// as if memory had run out.
func stingy(t *testing.T, version, refusal string) (text []byte, spent func(bool)) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "spent")
	text = fmt.Appendf(nil, "#!/bin/sh\n[ -e %s ] && %s\nexec %s -version %s\n", mark, refusal, hostile, version)
	return text, func(now bool) {
		if now {
			require.NoError(t, os.WriteFile(mark, nil, 0o600))
			return
		}
		require.NoError(t, os.Remove(mark))
	}
}

// The launch for another suspect fails, and this one runs out of time while it waits for
// its turn.
func TestASuspectIsNotChargedForALaunchThatFails(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	text, spent := stingy(t, "2", "sleep 60")
	v.write(text)
	config := v.config()
	config.StartTimeout = 5 * time.Second
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	spent(true)
	_, first := h.beginIsolated("plugin", `{}`)
	run, second := h.beginIsolated("plugin", `{}`)
	run.Cancel(job.CancelTimeout)
	for _, r := range []*report{first, second} {
		outcome := h.outcome(r)
		require.Equal(t, job.Released, outcome.Kind, outcome.Message)
		require.Equal(t, job.CodeNoProcess, outcome.Code)
		require.Zero(t, r.begun.Load())
	}
}

func TestSuspectsWithoutAProcessDoNotRollBackTheServingVersion(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting)
	text, spent := stingy(t, "2", "exit 9")
	v.write(text)
	require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
	pid := h.status("plugin").PIDs[0]
	spent(true)
	for range 4 { // more than break a plugin
		_, r := h.beginIsolated("plugin", `{}`)
		require.Equal(t, job.Released, h.outcome(r).Kind)
	}
	h.eventually(func() bool { return h.status("plugin").Restarts == 4 }, "the failed launches are counted")
	settled := make(chan struct{})
	require.NotNil(t, h.fleet("plugin").order(func(*conductor) { close(settled) }))
	<-settled
	last := h.status("plugin").LastSwap
	require.NotEqual(t, job.SwapByFailure, last.Trigger, last.Reason)
	require.Equal(t, []int{pid}, h.status("plugin").PIDs)
	require.False(t, h.fleet("plugin").current.breaker.broken())
}

func TestTheLimitOfIsolatedAttemptsChangesWithoutASwap(t *testing.T) {
	t.Parallel()
	config := misbehaving("good")
	config.Isolated = 3
	h := startHost(t, nil, config)
	h.awaitUp("good", 1)
	for range 3 {
		_, r := h.beginIsolated("good", `{}`)
		require.Equal(t, job.Success, h.outcome(r).Kind)
	}
	h.eventually(func() bool { return h.freeIsolated("good") == 3 }, "no more run isolated than configured")
	pids := h.status("good").PIDs
	config.Isolated = 1
	require.NoError(t, h.Reload([]Config{config}))
	h.eventually(func() bool { return h.freeIsolated("good") == 1 }, "fewer may run isolated")
	require.Equal(t, pids, h.status("good").PIDs)
	require.Nil(t, h.status("good").LastSwap)
	config.Isolated = -1
	require.ErrorContains(t, h.Reload([]Config{config}), "isolated -1 is below zero")
}
