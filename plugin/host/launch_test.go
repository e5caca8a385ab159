package host

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAPluginWithAnUnusualStartComesUp(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{
		"print", // on stdout before the handshake, the last line without an end
		"slow",
		"plain", // without TLS and go-plugin's services, as other languages do it
		"flood",
	} {
		t.Run(mode, func(t *testing.T) {
			h := startHost(t, nil, misbehaving(mode, "-mode", mode))
			require.Equal(t, job.Success, h.run(mode, `{}`).Kind)
			require.Zero(t, h.status(mode).Restarts)
			if mode == "print" {
				require.Contains(t, h.journal.String(), "loading | 1 | 2")
				require.Contains(t, h.journal.String(), "no end here")
			}
		})
	}
}

func TestAPluginThatDoesNotComeUpSaysWhy(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"exit":        "it ended during its start: exit status 1",
		"panic":       "it ended during its start: exit status 2; it printed: panic: out of luck",
		"silent":      "it was not up within 15s",
		"garbage":     "it was not up within 15s; it printed: this is no handshake",
		"endless":     "it was not up within 15s",
		"hung":        "it was not up within 15s",
		"mute":        "it was not up within 6s",
		"version":     "incompatible API version with plugin",
		"elsewhere":   "its socket /var/run/elsewhere.sock is not in",
		"undescribed": "describe: ",
		"badschema":   `its manifest is refused: job type "TEST": schema: `,
		"farschema":   `its manifest is refused: job type "TEST": schema: "https://example.com/a" refers to something outside`,
		"notypes":     "its manifest is refused: it declares no job type",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			config := misbehaving(mode, "-mode", mode)
			switch {
			case strings.Contains(want, "not up within 15s"):
				config.StartTimeout = 15 * time.Second // a busy machine is slow to start what prints
			case strings.Contains(want, "not up within 6s"):
				config.StartTimeout = 6 * time.Second // longer than a connection takes at most by itself
			}
			h := startHost(t, nil, config)
			h.eventually(func() bool { return h.status(mode).LastError != "" }, "a launch fails")
			require.Contains(t, h.status(mode).LastError, want)
			require.Empty(t, h.Pools())
			_, err := h.Start(mode, assignment(`{}`), newReport())
			require.ErrorIs(t, err, ErrNoSlot)
		})
	}
}

func TestAPluginHasAStartTimeoutOfItsOwn(t *testing.T) {
	t.Parallel()
	config := misbehaving("plugin", "-mode", "silent")
	config.StartTimeout = 200 * time.Millisecond
	h := startHost(t, nil, config)
	says := func(want string) func() bool {
		return func() bool { return h.status("plugin").LastError == want }
	}
	h.eventually(says("it was not up within 200ms"), "the launch ends at its own timeout")
	config.StartTimeout = 300 * time.Millisecond
	require.NoError(t, h.Reload([]Config{config}))
	h.eventually(says("it was not up within 300ms"), "the next launch has the new timeout")
	require.Nil(t, h.status("plugin").LastSwap)
}

func TestAVersionThatIsStillStartingGivesWayToANewerFile(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting, func(c *Config) { c.StartTimeout = MaxStartTimeout })
	v.install("-version", "2", "-mode", "hung")
	h.eventually(func() bool { return h.status("plugin").Candidate != nil }, "a version starts")
	v.install("-version", "3")
	h.eventually(func() bool { return h.status("plugin").Version == "3" }, "the newer file serves")
	require.Contains(t, h.journal.String(), `"reason":"its file has changed again while it was starting"`)
}

func TestAVersionWithTheConfiguredChecksumGivesWayToNoOtherFile(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting, func(c *Config) { c.Watch = false })
	v.install("-version", "2", "-mode", "slow")
	config := v.config()
	promoting(&config)
	config.Checksum = checksum(t, v.path)
	require.NoError(t, h.Reload([]Config{config}))
	h.eventually(func() bool { return strings.Contains(h.journal.String(), "plugin swap begins") }, "a version starts")
	v.install("-version", "3")
	h.eventually(func() bool { return h.status("plugin").Version == "2" }, "the version with the checksum serves")
}

func TestACandidateGivesWayOnlyToAFileThatWouldBeTried(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "2")
	file, err := binary.Pin(v.path)
	require.NoError(t, err)
	t.Cleanup(file.Close)
	const stable = time.Minute
	c := &conductor{fleet: &fleet{settings: Settings{WatchStable: stable}}}
	candidate := &generation{binary: file}
	now := time.Now()
	// looks reports what two looks find that are so far apart.
	looks := func(apart time.Duration) bool {
		watch := binary.NewWatch(v.path, file.Info())
		require.False(t, c.isReplaced(candidate, watch, now))
		return c.isReplaced(candidate, watch, now.Add(apart))
	}
	require.False(t, looks(stable), "nothing has changed")
	require.NoError(t, os.Chtimes(v.path, now, now))
	require.False(t, looks(stable), "the content is the same")
	v.install("-version", "3")
	require.False(t, looks(stable-1), "somebody may still be writing it")
	require.True(t, looks(stable))
	c.rejected = version{digest: checksum(t, v.path), mode: 0o755}
	require.False(t, looks(stable), "it was rejected before")
}

func TestAPluginIsNotLaunchedWithoutItsLimits(t *testing.T) {
	t.Parallel()
	config := misbehaving("good")
	config.Limits.OpenFiles = 1 << 40
	h := startHost(t, nil, config)
	h.eventually(func() bool { return h.status("good").LastError != "" }, "the launch fails")
	require.Contains(t, h.status("good").LastError, "limit open files: operation not permitted")
	require.Empty(t, processesOf(h.dir))
}

func TestAPluginThatEndsAtOnceIsNotAForkStorm(t *testing.T) {
	t.Parallel()
	launches := filepath.Join(t.TempDir(), "launches")
	config := misbehaving("exit", "-mode", "exit", "-launches", launches)
	config.Processes = 4
	const pause = 400 * time.Millisecond
	h := startHost(t, func(s *Settings) { s.Backoff.Max = pause }, config, misbehaving("good", "-types", "OTHER"))
	h.eventually(func() bool { return h.status("exit").State == job.PluginBroken }, "the breaker opens")
	// From a launch on: the first pause must not have begun before.
	before := countLines(t, launches)
	h.eventually(func() bool { return countLines(t, launches) > before }, "a broken plugin is probed")
	begun, more := time.Now(), 0
	before = countLines(t, launches)
	h.eventually(func() bool {
		require.Equal(t, job.Success, h.run("good", `{"do":"sleep","ms":20}`).Kind)
		more = countLines(t, launches) - before
		return more >= 5
	}, "a broken plugin is probed")
	pauses := float64(time.Since(begun)) / (0.9 * float64(pause)) // some are a tenth shorter
	require.LessOrEqual(t, float64(more), pauses+1, "four slots share one backoff")
	require.Equal(t, job.PluginBroken, h.status("exit").State)
}

func TestABrokenPluginRecovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "plugin")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o755))
	config := misbehaving("mended")
	config.Path, config.Watch = path, true
	h := startHost(t, nil, config)
	h.eventually(func() bool { return h.status("mended").State == job.PluginBroken }, "the breaker opens")

	require.NoError(t, os.WriteFile(path+".new", []byte("#!/bin/sh\nexec "+hostile+"\n"), 0o755))
	require.NoError(t, os.Rename(path+".new", path))
	require.Equal(t, job.Success, h.run("mended", `{}`).Kind)
	require.Equal(t, job.PluginUp, h.status("mended").State)
}

func TestAnotherBinaryThanTheConfiguredOneIsNotStarted(t *testing.T) {
	t.Parallel()
	launches := filepath.Join(t.TempDir(), "launches")
	good := misbehaving("good")
	good.Checksum = strings.ToUpper(checksum(t, hostile))
	forged := misbehaving("forged", "-launches", launches)
	forged.Checksum = strings.Repeat("0", 64)
	h := startHost(t, nil, good, forged)
	for range 2 {
		require.Equal(t, job.Crash, h.run("good", do("exit")).Kind)
	}
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	h.eventually(func() bool { return h.status("forged").State == job.PluginBroken }, "the forged one is refused")
	require.Contains(t, h.status("forged").LastError, "does not have the configured checksum")
	require.NoFileExists(t, launches)
}

func TestAJobTypeIsServedByOnePlugin(t *testing.T) {
	t.Parallel()
	first, second := misbehaving("first", "-types", "A,B"), misbehaving("second", "-types", "B,C")
	h := startHost(t, nil, first)
	h.awaitUp("first", 1)
	require.NoError(t, h.Reload([]Config{first, second}))
	h.eventually(func() bool { return h.status("second").State == job.PluginBroken }, "the second is refused")
	require.Equal(t, "job type B is already served by plugin first", h.status("second").LastError)
	require.Len(t, h.Pools(), 1)
	require.Equal(t, job.PluginUp, h.status("first").State)
}

func TestProcessesOfOnePluginAgreeOnTheManifest(t *testing.T) {
	t.Parallel()
	config := misbehaving("changing", "-mode", "changing")
	config.Processes = 2
	h := startHost(t, nil, config)
	h.awaitUp("changing", 1)
	h.eventually(func() bool { return strings.Contains(h.status("changing").LastError, "its manifest differs") }, "the second is refused")
	require.Equal(t, job.PluginUp, h.status("changing").State)

	// If no other process is up, a new version is accepted.
	before := h.status("changing").Version
	h.run("changing", do("exit"))
	h.awaitUp("changing", 1)
	require.NotEqual(t, before, h.status("changing").Version)
	require.Equal(t, h.status("changing").Version, h.Types()[0].Version)
}

func TestInvalidConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	dir := socketDir(t)
	note := filepath.Join(dir, "note.txt")
	require.NoError(t, os.WriteFile(note, nil, 0o600))
	for want, change := range map[string]func(*Settings, *[]Config){
		"no such file":             func(_ *Settings, c *[]Config) { (*c)[0].Path = "/no/such/binary" },
		"is not executable":        func(_ *Settings, c *[]Config) { (*c)[0].Path = note },
		"is not a file":            func(_ *Settings, c *[]Config) { (*c)[0].Path = dir },
		"configured twice":         func(_ *Settings, c *[]Config) { *c = append(*c, (*c)[0]) },
		"has no name":              func(_ *Settings, c *[]Config) { (*c)[0].Name = "" },
		"processes 0 is below 1":   func(_ *Settings, c *[]Config) { (*c)[0].Processes = 0 },
		"is below zero":            func(_ *Settings, c *[]Config) { (*c)[0].Concurrency = -1 },
		"start timeout: -1s":       func(_ *Settings, c *[]Config) { (*c)[0].StartTimeout = -time.Second },
		"not a SHA-256":            func(_ *Settings, c *[]Config) { (*c)[0].Checksum = "abcd" },
		"is too long":              func(s *Settings, _ *[]Config) { s.SocketDir = "/" + strings.Repeat("x", 60) },
		"is not an absolute path":  func(s *Settings, _ *[]Config) { s.SocketDir = "sockets" },
		"must be above zero":       func(s *Settings, _ *[]Config) { s.KillGrace = 0 },
		"backoff must have":        func(s *Settings, _ *[]Config) { s.Backoff.Max = 0 },
		"drain timeout, probation": func(s *Settings, _ *[]Config) { s.WatchStable = 0 },
		"is not from 0 to 1":       func(_ *Settings, c *[]Config) { (*c)[0].Canary.Share = 1.5 },
		"canary period -1s":        func(_ *Settings, c *[]Config) { (*c)[0].Canary.Period = -time.Second },
		"lines per second must be": func(s *Settings, _ *[]Config) { s.LinesPerSecond = 0 },
	} {
		settings, configs := testSettings(dir, &journal{}), []Config{misbehaving("good")}
		change(&settings, &configs)
		_, err := Start(t.Context(), settings, configs)
		require.ErrorContains(t, err, want)
	}
}

func checksum(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func countLines(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Count(string(text), "\n")
}
