package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestADeathIsReportedWithItsCause(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	for what, want := range map[string]string{
		"exit":         "exit status 3",
		"panic":        "exit status 2",
		"close-stream": "stream closed",
	} {
		_, bystander := h.begin("good", `{"do":"sleep","ms":60000}`)
		pid := h.status("good").PIDs[0]
		outcome := h.run("good", do(what))
		require.Equal(t, job.Crash, outcome.Kind)
		require.Contains(t, outcome.Message, fmt.Sprintf("plugin good, pid %d: %s", pid, want))
		require.Equal(t, 1, outcome.CoResidents)
		beside := h.outcome(bystander)
		require.Equal(t, job.Crash, beside.Kind)
		require.Equal(t, 1, beside.CoResidents)
		require.False(t, alive(pid))
		if what == "panic" {
			require.True(t, strings.HasPrefix(outcome.Stack, "panic: boom"), outcome.Stack)
		}
	}
	_, r := h.begin("good", do("ignore"))
	require.NoError(t, syscall.Kill(h.status("good").PIDs[0], syscall.SIGKILL))
	alone := h.outcome(r)
	require.Contains(t, alone.Message, "signal: killed")
	require.Zero(t, alone.CoResidents)
	h.eventually(func() bool { return h.status("good").Restarts == 4 }, "the restarts are counted")
	require.Equal(t, 4, h.status("good").Crashes)
	require.Contains(t, h.status("good").LastError, "signal: killed")
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
}

func TestAnOutcomeSentJustBeforeTheDeathCounts(t *testing.T) {
	h := startHost(t, nil, misbehaving("plain", "-mode", "plain"))
	for n := range 5 {
		require.Equal(t, `"finished"`, string(h.run("plain", do("finish-and-exit")).Result))
		h.eventually(func() bool { return h.status("plain").Restarts == n+1 }, "another process is up")
	}
}

func TestKillEndsAProcessThatIgnoresItsCancelWithItsChildren(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	run, r := h.begin("good", do("ignore-with-child"))
	child, err := strconv.Atoi(h.progress(r))
	require.NoError(t, err)
	require.True(t, alive(child))
	run.Cancel(job.CancelTimeout)
	require.Empty(t, r.done)
	run.Kill()
	outcome := h.outcome(r)
	require.Equal(t, job.Crash, outcome.Kind)
	require.Contains(t, outcome.Message, "killed on request")
	require.False(t, alive(child), "the child outlives the kill")
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	require.Equal(t, 1, h.status("good").Restarts)
	require.Zero(t, h.status("good").Crashes, "the kill was the host's")
	require.Equal(t, job.PluginUp, h.status("good").State)
}

func TestAChildThatHoldsThePipesDelaysNothing(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.Cgroup = CgroupNone }, misbehaving("good"))
	for _, payload := range []string{`{"do":"spawn"}`, `{"do":"spawn","n":1}`, `{"do":"spawn","n":2}`} {
		child, err := strconv.Atoi(string(h.run("good", payload).Result))
		require.NoError(t, err)
		require.True(t, alive(child))
		begun := time.Now()
		require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
		require.Less(t, time.Since(begun), soon)
		require.False(t, alive(child), "a child outlives its process")
	}
}

func TestAStoppedProcessHarmsOnlyItsOwnAttempts(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.HealthTimeout = 10 * time.Second }, misbehaving("stopped"), misbehaving("good", "-types", "OTHER"))
	run, r := h.begin("stopped", do("stop"))
	pid := h.status("stopped").PIDs[0]
	h.awaitUp("good", 1)
	begun := time.Now()
	for len(r.done) == 0 && time.Since(begun) < time.Minute {
		run.Extend(time.Minute)
		at := time.Now()
		require.Equal(t, job.Success, h.run("good", `{}`).Kind)
		require.Less(t, time.Since(at), 5*time.Second, "the other plugin is held up")
	}
	require.Greater(t, time.Since(begun), 500*time.Millisecond)
	outcome := h.outcome(r)
	require.Equal(t, job.Crash, outcome.Kind)
	require.Contains(t, outcome.Message, "health check")
	require.False(t, alive(pid))
	require.Equal(t, job.Success, h.run("stopped", `{}`).Kind)
}

func TestAPluginThatDoesNotReadBlocksNobody(t *testing.T) {
	config := misbehaving("deaf", "-mode", "deaf")
	config.Concurrency = 1000
	h := startHost(t, func(s *Settings) { s.HealthTimeout = 2 * time.Second }, config)
	h.awaitUp("deaf", 1)
	var reports []*report
	for range 200 {
		begun := time.Now()
		run, r := h.begin("deaf", `{"x":"`+strings.Repeat("x", 10_000)+`"}`)
		run.Extend(time.Minute)
		run.Cancel(job.CancelTimeout)
		require.Less(t, time.Since(begun), soon)
		reports = append(reports, r)
	}
	for _, r := range reports {
		outcome := h.outcome(r)
		require.Equal(t, job.Crash, outcome.Kind)
		require.Contains(t, outcome.Message, "it does not read its stream")
		require.EqualValues(t, 1, r.finished.Load())
	}
}

func TestEndlessOutputIsReadAndCounted(t *testing.T) {
	h := startHost(t, nil, misbehaving("flood", "-mode", "flood"), misbehaving("good", "-types", "OTHER"))
	h.awaitUp("flood", 1)
	for range 100 {
		require.Equal(t, job.Success, h.run("flood", `{}`).Kind)
		require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	}
	h.eventually(func() bool { return strings.Contains(h.journal.String(), "plugin output suppressed") }, "lines are suppressed")
	require.Zero(t, h.status("flood").Restarts)
	require.Less(t, h.journal.lines(), 5000)
}

func TestAnyOutputIsRead(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	require.Equal(t, job.Success, h.run("good", do("print-without-end")).Kind)
	require.Equal(t, job.Success, h.run("good", do("print-bad-json")).Kind)
	h.eventually(func() bool { return strings.Contains(h.journal.String(), `{\"@message\": 42}`) }, "the line is logged")
	require.Zero(t, h.status("good").Restarts)
}

func TestAProcessInheritsNoEnvironment(t *testing.T) {
	config := misbehaving("good")
	config.Env = append(config.Env, "GIVEN=yes", "HOLDFAST_HANDLER=forged")
	h := startHost(t, nil, config)
	require.Equal(t, secret, os.Getenv("HOST_TEST_SECRET"))
	var environment []string
	require.NoError(t, json.Unmarshal(h.run("good", do("environment")).Result, &environment))
	require.Contains(t, environment, "GIVEN=yes")
	require.NotContains(t, strings.Join(environment, "\n"), secret)
	require.Less(t, len(environment), 12)
}

func TestPluginsEndWithAKilledHost(t *testing.T) {
	for _, mode := range []string{"good", "cunning"} {
		for _, cgroup := range []string{CgroupAuto, CgroupNone} {
			t.Run(mode+", cgroup "+cgroup, func(t *testing.T) {
				t.Parallel()
				dir := socketDir(t)
				host, family := victim{mode: mode, cgroup: cgroup, lease: time.Hour}.run(t, dir)
				require.NoError(t, host.Kill())
				killed := time.Now()
				require.Eventually(t, func() bool { return !slices.ContainsFunc(family, alive) },
					soon, time.Millisecond, "something outlives the host")
				// Two seconds if the machine has the time.
				require.Less(t, time.Since(killed), soon/2)
				require.Eventually(t, func() bool {
					left, err := os.ReadDir(dir)
					return err == nil && len(left) == 0
				}, soon, time.Millisecond, "a keeper clears up")
				requireNothingLeft(t, dir)
			})
		}
	}
}

func TestTheNextHostCleansUpAfterAKilledOne(t *testing.T) {
	dir := socketDir(t)
	first, err := Start(t.Context(), testSettings(dir, &journal{}), []Config{misbehaving("good")})
	require.NoError(t, err)
	h := &testHost{Host: first, t: t, journal: &journal{}, dir: dir}
	escaped, err := strconv.Atoi(string(h.run("good", `{"do":"spawn","n":1}`).Result))
	require.NoError(t, err)
	pid := h.status("good").PIDs[0]
	// A lock that nobody holds means that its owner is dead.
	path := filepath.Join(first.home.Path, "lock")
	require.NoError(t, os.Rename(path, path+"-held"))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	second, err := Start(t.Context(), testSettings(dir, &journal{}), nil)
	require.NoError(t, err)
	require.NoDirExists(t, first.home.Path)
	require.Eventually(t, func() bool { return !alive(pid) && !alive(escaped) }, patience, time.Millisecond)
	require.NoError(t, second.Close(t.Context()))
	h.closeWithin(0)
	requireNothingLeft(t, dir)
}

func TestALivingHostIsNotSwept(t *testing.T) {
	first := startHost(t, nil, misbehaving("good"))
	first.awaitUp("good", 1)
	second, err := Start(t.Context(), testSettings(first.dir, &journal{}), []Config{misbehaving("good")})
	require.NoError(t, err)
	require.NoError(t, second.Close(t.Context()))
	require.Equal(t, job.Success, first.run("good", `{}`).Kind)
	require.Zero(t, first.status("good").Restarts)
}

func TestFiftyCrashesLeaveNothingBehind(t *testing.T) {
	h := startHost(t, func(s *Settings) {
		s.Backoff = Backoff{Min: time.Millisecond, Max: time.Millisecond, BreakAfter: 1000, StableAfter: time.Hour}
	}, misbehaving("good"))
	require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
	settled := func() (files, routines int) {
		h.run("good", `{}`)
		return openFiles(t), runtime.NumGoroutine()
	}
	files, routines := settled()
	for range 50 {
		require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
	}
	h.eventually(func() bool {
		filesNow, routinesNow := settled()
		// A few may be open at any time. A leak would leave fifty.
		return filesNow < files+10 && routinesNow < routines+10
	}, "files and goroutines are as many as before")
	require.Len(t, processesOf(h.dir), 1)
	homes, err := os.ReadDir(h.dir)
	require.NoError(t, err)
	require.Len(t, homes, 1)
	launches, err := filepath.Glob(h.home.Path + "/plugin-dir*")
	require.NoError(t, err)
	require.Len(t, launches, 1)
}

func TestOnePluginDoesNotHarmAnother(t *testing.T) {
	h := startHost(t, nil, misbehaving("bad"), misbehaving("good", "-types", "OTHER"))
	_, r := h.begin("good", `{"do":"sleep","ms":300}`)
	for range 3 {
		require.Equal(t, job.Crash, h.run("bad", do("exit")).Kind)
	}
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Zero(t, h.status("good").Restarts)
	require.Equal(t, []string{"TEST"}, h.fleet("bad").declared().Types)
	require.Len(t, h.Types(), 2)
}

func TestCloseLetsAttemptsFinish(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	_, r := h.begin("good", `{"do":"sleep","ms":300}`)
	begun := time.Now()
	require.NoError(t, h.Close(t.Context()))
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Less(t, time.Since(begun), soon)
	require.Empty(t, h.Pools())
	require.Empty(t, h.status("good").PIDs)
	_, err := h.Start("good", assignment(`{}`), newReport())
	require.ErrorIs(t, err, ErrNoSlot)
	require.NoError(t, h.Close(t.Context()))
	require.NotContains(t, h.journal.String(), `"level":"WARN"`)
}

func TestCloseReleasesAttemptsThatDoNotFinishInTime(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	_, r := h.begin("good", do("ignore-with-child"))
	child, err := strconv.Atoi(h.progress(r))
	require.NoError(t, err)
	h.closeWithin(50 * time.Millisecond)
	require.Equal(t, job.Released, h.outcome(r).Kind)
	require.False(t, alive(child))
}

func TestCloseDoesNotWaitForAProcessThatWillNotLeave(t *testing.T) {
	h := startHost(t, nil, misbehaving("clingy", "-mode", "clingy"))
	require.Equal(t, job.Success, h.run("clingy", `{}`).Kind)
	begun := time.Now()
	require.NoError(t, h.Close(t.Context()))
	require.Less(t, time.Since(begun), soon)
}

// openFiles counts the files that this process has open.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
