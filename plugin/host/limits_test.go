package host

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// inBothWays runs the test without cgroups, and with those that can be made here.
func inBothWays(t *testing.T, test func(t *testing.T, change func(*Settings))) {
	t.Helper()
	for _, setting := range []string{CgroupNone, CgroupAuto} {
		t.Run("cgroups "+setting, func(t *testing.T) {
			test(t, func(s *Settings) { s.Cgroup = setting })
		})
	}
}

// whileOthersWork starts an attempt of the plugin "bad" that exceeds a limit, and returns
// how it ends. Until then attempts of the plugin "good" run and end.
func whileOthersWork(t *testing.T, h *testHost, payload string) job.Outcome {
	t.Helper()
	h.awaitUp("good", 1)
	pid := h.status("good").PIDs[0]
	_, r := h.begin("bad", payload)
	began := time.Now()
	for done := 0; len(r.done) == 0 || done < 10; done++ {
		require.Less(t, time.Since(began), patience, "the attempt does not end")
		require.Equal(t, job.Success, h.run("good", `{"do":"sleep","ms":5}`).Kind)
	}
	outcome := h.outcome(r)
	require.Equal(t, []int{pid}, h.status("good").PIDs)
	require.Zero(t, h.status("good").Restarts)
	require.Equal(t, job.Success, h.run("bad", `{}`).Kind, "the plugin comes up again")
	return outcome
}

func TestAPluginThatForksWithoutEndIsContained(t *testing.T) {
	inBothWays(t, func(t *testing.T, change func(*Settings)) {
		bad := misbehaving("bad")
		bad.Limits = Limits{Processes: 200}
		h := startHost(t, change, bad, misbehaving("good", "-types", "OTHER"))
		outcome := whileOthersWork(t, h, do("fork-bomb"))
		require.Equal(t, job.Crash, outcome.Kind)
		require.Equal(t, string(osprocess.TooManyProcesses), outcome.Code)
		require.Contains(t, outcome.Message, "killed: more than 200 processes and threads")
		require.Contains(t, outcome.Stack, "about to fork", "its last words are kept")
		require.Contains(t, h.status("bad").LastError, "more than 200 processes")
	})
}

func TestAPluginThatUsesMemoryWithoutEndIsContained(t *testing.T) {
	inBothWays(t, func(t *testing.T, change func(*Settings)) {
		bad := misbehaving("bad")
		bad.Limits = Limits{MemoryBytes: 1 << 30}
		h := startHost(t, change, bad, misbehaving("good", "-types", "OTHER"))
		outcome := whileOthersWork(t, h, do("balloon"))
		require.Equal(t, job.Crash, outcome.Kind)
		if strings.Contains(h.journal.String(), "pthread_create failed") {
			return // The allocation that failed was the stack of a thread of the C library.
		}
		// What Go says depends on which of its allocations failed: of the heap, of its own
		// tables, or of addresses for either.
		require.Regexp(t, "out of memory|cannot allocate memory|page summary memory",
			outcome.Message+outcome.Stack)
	})
}

func TestChildrenThatUseMemoryTogetherAreContained(t *testing.T) {
	inBothWays(t, func(t *testing.T, change func(*Settings)) {
		bad := misbehaving("bad")
		bad.Limits = Limits{MemoryBytes: 1 << 29}
		h := startHost(t, change, bad, misbehaving("good", "-types", "OTHER"))
		outcome := whileOthersWork(t, h, do("balloon-of-children"))
		require.Equal(t, job.Crash, outcome.Kind)
		require.Equal(t, string(osprocess.OutOfMemory), outcome.Code)
		require.Contains(t, outcome.Message, "out of memory: the process and its children together took more than 512 MiB")
	})
}

func TestAPluginThatSpinsAllCoresIsContained(t *testing.T) {
	inBothWays(t, func(t *testing.T, change func(*Settings)) {
		bad := misbehaving("bad")
		bad.Limits = Limits{CPUs: 0.5}
		h := startHost(t, change, bad, misbehaving("good", "-types", "OTHER"))
		h.awaitUp("good", 1)
		run, r := h.begin("bad", do("spin"))
		h.progress(r)
		begun := time.Now()
		before := h.processorTime("bad")
		for time.Since(begun) < 2*time.Second {
			require.Equal(t, job.Success, h.run("good", `{"do":"sleep","ms":5}`).Kind)
		}
		took := h.processorTime("bad") - before
		require.Less(t, took.Seconds(), 1.2*time.Since(begun).Seconds(), "it has taken more than a processor")
		run.Kill()
		require.Equal(t, job.Crash, h.outcome(r).Kind)
		require.Zero(t, h.status("good").Restarts)
	})
}

func TestLimitsThatTheKernelSetsForEachProcess(t *testing.T) {
	config := misbehaving("good")
	config.Limits = Limits{MemoryBytes: 1 << 30, OpenFiles: 123, Processes: 4567}
	h := startHost(t, func(s *Settings) { s.Cgroup = CgroupNone }, config)
	var limits string
	require.NoError(t, json.Unmarshal(h.run("good", do("limits")).Result, &limits))
	require.Regexp(t, `Max data size +1073741824 +1073741824`, limits)
	require.Regexp(t, `Max open files +123 +123`, limits)
}

func TestLogAndStatusSayHowLimitsAreEnforced(t *testing.T) {
	config := misbehaving("good")
	config.Limits = Limits{MemoryBytes: 1 << 30, CPUs: 1, OpenFiles: 123}
	h := startHost(t, func(s *Settings) { s.Cgroup = CgroupNone }, config, misbehaving("free", "-types", "OTHER"))
	require.Contains(t, h.journal.String(), "plugins get no cgroups")
	require.Contains(t, h.journal.String(), "memory: rlimit and watch (")
	limits := h.status("good").Limits
	require.Len(t, limits, 3)
	require.Equal(t, "memory", limits[0].Limit)
	require.NotEmpty(t, limits[0].Gap)
	require.Empty(t, h.status("free").Limits)
}

func TestAConfiguredCgroupMustExist(t *testing.T) {
	dir := socketDir(t)
	settings := testSettings(dir, &journal{})
	settings.Cgroup = "/no/such/cgroup"
	_, err := Start(t.Context(), settings, nil)
	require.ErrorContains(t, err, "plugin host: cgroup: /no/such/cgroup is not a cgroup")
	requireNothingLeft(t, dir)
}

func TestAPluginRunsAsAnotherUser(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("only root can run a plugin as another user: ", err)
	}
	dir := passable(t)
	text, err := os.ReadFile(hostile)
	require.NoError(t, err)
	path := filepath.Join(dir, "hostile")
	require.NoError(t, os.WriteFile(path, text, 0o755))
	config := misbehaving("good")
	config.Path, config.User = path, "nobody"
	h := startHost(t, nil, config, misbehaving("ours", "-types", "OTHER"))
	require.JSONEq(t, nobody.Uid, string(h.run("good", do("uid")).Result))
	require.JSONEq(t, "0", string(h.run("ours", do("uid")).Result))
	child, err := strconv.Atoi(string(h.run("good", `{"do":"spawn","n":1}`).Result))
	require.NoError(t, err)
	require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
	require.False(t, alive(child), "a child of another user outlives its process")

	hidden := misbehaving("hidden", "-types", "HIDDEN")
	hidden.User = "nobody"
	require.NoError(t, os.Chmod(filepath.Dir(hostile), 0o700))
	require.NoError(t, h.Reload([]Config{config, misbehaving("ours", "-types", "OTHER"), hidden}))
	h.eventually(func() bool { return h.status("hidden").LastError != "" }, "the launch fails")
	require.Contains(t, h.status("hidden").LastError, "may not enter "+filepath.Dir(hostile))
}

// passable is a directory that every user may enter.
func passable(t *testing.T) string {
	t.Helper()
	dir := socketDir(t)
	require.NoError(t, os.Chmod(dir, 0o711))
	return dir
}

func TestKeepersEndWithTheHost(t *testing.T) {
	h := startHost(t, nil, misbehaving("kept-by-one"))
	require.Equal(t, job.Success, h.run("kept-by-one", `{}`).Kind)
	require.Len(t, keepersOf(h.dir), 1)
	require.NoError(t, h.Close(t.Context()))
	require.Empty(t, keepersOf(h.dir))
}

// keepersOf finds the keepers of the host with that socket directory.
func keepersOf(dir string) []string {
	var found []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), "\x00plugin-keeper\x00kept-by-one\x00"+dir+"/") {
			found = append(found, path)
		}
	}
	return found
}

// processorTime is how much the processes in the plugin's process group have used.
func (h *testHost) processorTime(name string) time.Duration {
	h.t.Helper()
	group := strconv.Itoa(h.status(name).PIDs[0])
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(h.t, err)
	ticks := int64(0)
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 13 || fields[2] != group {
			continue
		}
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			require.NoError(h.t, err)
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100
}
