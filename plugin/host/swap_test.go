package host

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAChangedFileTakesOver(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	before := h.status("plugin")
	require.Equal(t, "1", before.Version)
	require.Equal(t, checksum(t, v.path), before.SHA256)

	v.install("-version", "2")
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
	require.Equal(t, job.SwapByFile, swap.Trigger)
	require.Equal(t, before.PluginVersion, swap.From)
	now := h.status("plugin")
	require.Equal(t, v1.PluginVersion{Version: "2", SHA256: checksum(t, v.path)}, now.PluginVersion)
	require.Equal(t, now.PluginVersion, swap.To)
	require.Equal(t, "2", h.Pools()[0].Version)
	require.Equal(t, "2", h.Types()[0].Version)
	h.eventually(func() bool { return !alive(before.PIDs[0]) }, "the old version stops")
	require.Zero(t, h.status("plugin").Restarts)
	for _, line := range []string{"plugin swap begins", "plugin version on trial", "the new version serves", "plugin version stopped"} {
		h.eventually(func() bool { return strings.Contains(h.journal.String(), line) }, line)
	}
}

func TestSwapsUnderLoadLoseNothingAndChargeNothing(t *testing.T) {
	v := newVersioned(t)
	v.install("-version", "0")
	config := v.config()
	config.Processes = 2
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 2)
	load := h.load(8)
	var last *v1.PluginSwap
	for version := 1; version <= 20; version++ {
		v.install("-version", fmt.Sprint(version))
		swap := h.awaitSwap(last)
		require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
		require.Equal(t, fmt.Sprint(version), h.status("plugin").Version)
		last = &swap
	}
	config.Canary.Period = time.Minute // a trial too short for ten attempts, on a busy machine, may show no failure
	require.NoError(t, h.Reload([]Config{config}))
	for i, bad := range []struct{ flags, reason string }{
		{"-mode exit", "it ended during its start: exit status 1"},
		{"-crashing", "exit status 3"},
		{"-failing 0.3", "it fails more often: "},
		{"-mode badschema", "its manifest is refused"},
		{"-failing 1", "it fails more often: "},
	} {
		v.install("-version", fmt.Sprint("bad", i), bad.flags)
		swap := h.awaitSwap(last)
		require.Equal(t, job.SwapRolledBack, swap.Result, bad.flags)
		require.Contains(t, swap.Reason, bad.reason)
		require.Equal(t, "20", h.status("plugin").Version)
		last = &swap
	}
	load.end(t)
	require.Positive(t, load.onTrial.Load())
	require.Zero(t, h.status("plugin").Restarts, "a version that served was harmed")
	h.eventually(func() bool { return len(processesOf(h.dir)) == 2 }, "nothing is left of the others")
}

func TestAVersionOnTrialGetsItsShare(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Watch, config.Canary = false, Canary{Share: 0.1, Period: time.Hour}
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	old := h.status("plugin").PIDs[0]
	v.install("-version", "2")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	var begun v1.PluginSwap
	go func() {
		var err error
		begun, err = h.Swap(ctx, "plugin", false)
		ended <- err
	}()
	h.awaitTrial()
	candidate := h.status("plugin").Candidate
	require.Equal(t, "2", candidate.Version)
	require.Equal(t, "1", h.Pools()[0].Version, "claims see one pool")
	require.Equal(t, DefaultConcurrency, h.free("plugin"))
	require.Len(t, h.Pools(), 1)

	ran := map[int]int{}
	for range 50 {
		ran[identityOf(t, h.run("plugin", do("identity"))).PID]++
	}
	require.Equal(t, map[int]int{candidate.PIDs[0]: 5, old: 45}, ran)
	require.Equal(t, 5, h.status("plugin").Candidate.Ended)

	cancel()
	require.ErrorContains(t, <-ended, "the swap is still under way")
	require.Equal(t, *h.status("plugin").LastSwap, begun)
	require.NotNil(t, h.status("plugin").Candidate, "who waits no longer does not end it")
}

func TestAFailureOnTrialIsNotCharged(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Canary = Canary{Share: 1, Period: time.Hour}
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	h.awaitTrial()
	for _, what := range []string{"fail", "fail-permanently", "nothing"} {
		outcome := h.run("plugin", do(what))
		require.Equal(t, job.Released, outcome.Kind, what)
		require.Equal(t, message.CodeCanary, outcome.Code)
		require.Contains(t, outcome.Message, `on version "2"`)
	}
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, job.Snoozed, h.run("plugin", do("snooze")).Kind)
	run, r := h.begin("plugin", `{"do":"fail-when-canceled"}`)
	run.Cancel(job.CancelTimeout)
	require.Equal(t, message.CodeCanary, h.outcome(r).Code)

	// A death ends the trial. The serving version runs the jobs that were in the
	// process again.
	_, bystander := h.begin("plugin", `{"do":"sleep","ms":60000}`)
	for _, outcome := range []job.Outcome{h.run("plugin", do("exit")), h.outcome(bystander)} {
		require.Equal(t, job.Released, outcome.Kind)
		require.Equal(t, message.CodeCanary, outcome.Code)
		require.Contains(t, outcome.Message, "exit status 3")
	}
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Contains(t, swap.Reason, "exit status 3")
	require.Equal(t, job.Failure, h.run("plugin", do("fail")).Kind)
}

func TestTheOldVersionCanBeLaunchedAfterItsFileWasReplaced(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	v.install("-version", "2", "-mode", "exit")
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, swap.Result)

	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, "1", h.status("plugin").Version)
	_, r := h.beginIsolated("plugin", `{}`)
	require.Equal(t, job.Success, h.outcome(r).Kind)

	// The rejected version is not tried again, even after a touch of its file.
	now := time.Now()
	require.NoError(t, os.Chtimes(v.path, now, now))
	for range 20 {
		require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":20}`).Kind)
	}
	require.Equal(t, swap.BegunAt, h.status("plugin").LastSwap.BegunAt)
	require.Equal(t, job.SwapRolledBack, h.swap(false).Result, "it is tried when somebody asks")

	v.install("-version", "3")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(h.status("plugin").LastSwap).Result)
}

func TestAReplacedScriptIsNotLaunchedAsTheOldOne(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	old, err := os.ReadFile(v.path)
	require.NoError(t, err)
	h := v.serve()
	v.script("-version", "2", "-mode", "exit")
	require.Equal(t, job.SwapRolledBack, h.awaitSwap(nil).Result)

	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	h.eventually(func() bool { return h.status("plugin").State == job.PluginBroken }, "the old one cannot be launched")
	require.Contains(t, h.status("plugin").LastError, "is no longer the script with the SHA-256 "+h.status("plugin").SHA256)

	v.write(old)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, "1", h.status("plugin").Version)
}

func TestAScriptOnTrialServesIfTheOneBeforeCannotBeLaunchedAgain(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	config := v.config()
	config.Canary = Canary{Share: 0.5, Period: time.Hour}
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.script("-version", "2")
	h.awaitTrial()
	require.NoError(t, syscall.Kill(h.status("plugin").PIDs[0], syscall.SIGKILL))
	h.eventually(func() bool { return h.status("plugin").Version == "2" }, "the new version serves")
	require.Equal(t, job.SwapPromoted, h.status("plugin").LastSwap.Result)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
}

func TestAScriptThatIsMadeExecutableIsTriedAgain(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	h := v.serve(promoting)
	script := fmt.Appendf(nil, "#!/bin/sh\nexec %s -version 2\n", hostile)
	require.NoError(t, os.WriteFile(v.path+".new", script, 0o644))
	require.NoError(t, os.Rename(v.path+".new", v.path))
	h.eventually(func() bool {
		last := h.status("plugin").LastSwap
		return last != nil && last.Result == job.SwapRolledBack
	}, "what may not be executed is rolled back")
	require.Contains(t, h.status("plugin").LastSwap.Reason, "permission denied")

	require.NoError(t, os.Chmod(v.path, 0o755))
	h.eventually(func() bool { return h.status("plugin").Version == "2" }, "it serves once it may be executed")
}

func TestAScriptThatIsOverwrittenInPlaceIsNotLaunchedAsTheOldOne(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	config := v.config()
	config.Watch = false
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	require.NoError(t, os.WriteFile(v.path, []byte("#!/bin/sh\nexec "+hostile+" -version 2.0\n"), 0o755))
	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	h.eventually(func() bool { return h.status("plugin").State == job.PluginBroken }, "the old one cannot be launched")
	require.Contains(t, h.status("plugin").LastError, "was overwritten in place")
	require.Equal(t, job.SwapPromoted, h.swap(false).Result)
	require.Equal(t, "2.0", h.status("plugin").Version)
}

func TestAVersionWithAnotherChecksumThanTheConfiguredOneIsRefused(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Checksum = checksum(t, v.path)
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapRefused, swap.Result)
	require.Contains(t, swap.Reason, "does not have the configured checksum: it is "+checksum(t, v.path))
	require.Equal(t, "1", h.status("plugin").Version)
	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, "1", h.status("plugin").Version)
}

func TestTheOldVersionIsKilledWhenItsDrainTimeIsOver(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	h := startHost(t, func(s *Settings) { s.DrainTimeout = 3 * time.Second }, v.config())
	_, hangs := h.begin("plugin", do("ignore-with-child"))
	_, aloneHangs := h.beginIsolated("plugin", do("ignore-with-child"))
	h.progress(hangs)
	h.progress(aloneHangs)
	old := h.status("plugin").PIDs[0]
	v.install("-version", "2")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
	require.True(t, alive(old))
	require.Equal(t, 2, h.status("plugin").Draining)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, job.Released, h.outcome(hangs).Kind)
	require.Equal(t, job.Released, h.outcome(aloneHangs).Kind)
	h.eventually(func() bool { return !alive(old) && h.status("plugin").Draining == 0 }, "the old version is killed")
	require.Zero(t, h.status("plugin").Crashes)
}

func TestClosingInTheMiddleOfASwapLeavesNothing(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Canary = Canary{Share: 1, Period: time.Hour}
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	h.awaitTrial()
	_, r := h.begin("plugin", `{"do":"sleep","ms":300}`)
	require.NoError(t, h.Close(t.Context()))
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Equal(t, job.SwapAbandoned, h.status("plugin").LastSwap.Result)
	_, err := h.Swap(t.Context(), "plugin", false)
	require.ErrorIs(t, err, job.ErrNoPlugin)
	require.ErrorContains(t, h.Reload(nil), "closing")
}

func TestAPluginThatIsDownIsNotTriedOnLiveWork(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-mode", "exit")
	config := v.config()
	config.Canary.Period = time.Hour
	h := startHost(t, nil, config)
	h.eventually(func() bool { return h.status("plugin").State == job.PluginBroken }, "the breaker opens")
	v.install("-version", "2")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
}

func TestAnIdleVersionThatDiesIsRolledBack(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Canary.Period = time.Hour
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	h.awaitTrial()
	require.NoError(t, syscall.Kill(h.status("plugin").Candidate.PIDs[0], syscall.SIGKILL))
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Contains(t, swap.Reason, "signal: killed")
}

func TestAVersionThatFailsSoonAfterItsPromotionIsRolledBack(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting) // no trial, so the promotion comes before the fault shows
	v.install("-version", "2", "-crashing")
	swap := h.awaitSwap(nil)
	require.Equal(t, job.SwapPromoted, swap.Result)

	var last *v1.PluginSwap
	h.eventually(func() bool {
		_, _ = h.Start("plugin", assignment(`{}`), newReport())
		last = h.status("plugin").LastSwap
		return last.Trigger == job.SwapByFailure && last.Result != ""
	}, "the version before serves again")
	require.Equal(t, job.SwapPromoted, last.Result)
	require.Equal(t, swap.From, last.To)
	require.Contains(t, last.Reason, `version "2" kept failing soon after its promotion: pid `)
	require.Equal(t, "1", h.status("plugin").Version)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	for range 20 { // the file is still the one that failed
		require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":10}`).Kind)
	}
	require.Equal(t, "1", h.status("plugin").Version)

	v.install("-version", "3")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(last).Result)
	require.Equal(t, "3", h.status("plugin").Version)
}

func TestAVersionThatHasPassedItsProbationIsKept(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Canary.Period = 0
	h := startHost(t, func(s *Settings) { s.Probation = time.Millisecond }, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2", "-crashing")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
	h.eventually(func() bool {
		_, _ = h.Start("plugin", assignment(`{}`), newReport())
		return h.status("plugin").State == job.PluginBroken
	}, "it is broken")
	require.Equal(t, "2", h.status("plugin").Version)
	require.Equal(t, job.SwapByFile, h.status("plugin").LastSwap.Trigger)
}

// The configuration led to another file for a while, which was rolled back.
func TestAFileIsWatchedAgainWhenTheConfigurationReturnsToIt(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting)
	other := newVersioned(t)
	other.install("-version", "bad", "-mode", "exit")
	elsewhere := v.config()
	elsewhere.Path = other.path
	require.NoError(t, h.Reload([]Config{elsewhere}))
	rolledBack := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, rolledBack.Result)

	config := v.config()
	promoting(&config)
	require.NoError(t, h.Reload([]Config{config}))
	v.install("-version", "2")
	swap := h.awaitSwap(&rolledBack)
	require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
	require.Equal(t, "2", h.status("plugin").Version)
}
