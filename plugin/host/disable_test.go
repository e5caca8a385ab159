package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestEnablingDoesNotServeARolledBackVersion(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	v.install("-version", "2", "-mode", "exit")
	rolledBack := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, rolledBack.Result)
	for range 2 {
		require.NoError(t, h.Disable(t.Context(), "plugin"))
		require.Equal(t, job.SwapRefused, h.swap(false).Result, "it finds nothing out")
		require.NoError(t, h.Enable(t.Context(), "plugin", false))
		require.Equal(t, "it is the version that was rolled back or refused", h.status("plugin").SkipReason)
		for range 20 { // for longer than a file must be stable
			require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":20}`).Kind)
		}
		require.Equal(t, rolledBack.From, h.status("plugin").PluginVersion)
		require.Equal(t, job.SwapByRequest, h.status("plugin").LastSwap.Trigger)
	}

	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", true))
	require.Equal(t, rolledBack.To.SHA256, h.status("plugin").SHA256)
	require.Empty(t, h.status("plugin").SkipReason)
}

func TestEnablingStartsTheLastVersionEvenIfASwapToItselfFailed(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	text, spent := stingy(t, "1", "exit 1")
	v.write(text)
	h := v.serve()
	spent(true)
	require.Equal(t, job.SwapRolledBack, h.swap(false).Result)
	spent(false)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Empty(t, h.status("plugin").SkipReason, "the file is what serves")
}

func TestEnablingIsRefusedWhenTheVersionBeforeIsGone(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	h := v.serve(func(c *Config) { c.Canary.Period = 3 * time.Second })
	v.script("-version", "2", "-failing", "1")
	h.awaitTrial()
	h.eventually(func() bool {
		_, _ = h.Start("plugin", assignment(`{}`), newReport())
		return h.status("plugin").Candidate == nil
	}, "it is rolled back")
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	err := h.Enable(t.Context(), "plugin", false)
	require.ErrorContains(t, err, "its file is the version that was rolled back or refused, and the version that served before cannot be launched: ")
	require.ErrorContains(t, err, "; use force to enable it anyway")
	require.Equal(t, job.PluginDisabled, h.status("plugin").State)
	require.NoError(t, h.Enable(t.Context(), "plugin", true))
	h.awaitUp("plugin", 1)
	require.Equal(t, "2", h.status("plugin").Version)
}

// misconfigured starts a host in which version 1 serves, and another configuration of it
// was rolled back.
func misconfigured(t *testing.T) (*versioned, *testHost, v1.PluginSwap) {
	t.Helper()
	v, h := versionOne(t)
	bad := v.config()
	bad.Args = []string{"-mode", "exit"}
	require.NoError(t, h.Reload([]Config{bad}))
	rolledBack := h.awaitSwap(nil)
	require.Equal(t, job.SwapRolledBack, rolledBack.Result)
	return v, h, rolledBack
}

func TestEnablingUsesAConfigurationThatWasFixed(t *testing.T) {
	t.Parallel()
	v, h, _ := misconfigured(t)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind, "as it was configured before")
	require.NotEmpty(t, h.status("plugin").SkipReason)

	require.NoError(t, h.Disable(t.Context(), "plugin"))
	mended := v.config()
	mended.Env = append([]string{"GIVEN=now"}, mended.Env...)
	require.NoError(t, h.Reload([]Config{mended}))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Contains(t, string(h.run("plugin", do("environment")).Result), "GIVEN=now")
	require.Empty(t, h.status("plugin").SkipReason)
}

func TestTheLastOrdersCanUseTheKeptVersions(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	v.install("-version", "2", "-mode", "exit")
	require.Equal(t, job.SwapRolledBack, h.awaitSwap(nil).Result)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	f := h.fleet("plugin")
	h.eventually(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.old) == 0
	}, "nothing runs that would hold the file, too")
	begun, busy, enabled := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	require.NotNil(t, f.order(func(*conductor) { close(begun); <-busy }))
	<-begun
	require.NotNil(t, f.order(func(c *conductor) { enabled <- c.enable(false, "") }))
	require.NoError(t, h.Reload(nil))
	close(busy)
	require.NoError(t, <-enabled)
	h.eventually(func() bool { return len(heldOpen(t, v.path)) == 0 }, "nothing is held open")
}

// heldOpen returns this process's descriptors for the path, or for a file that was at
// the path before.
func heldOpen(t *testing.T, path string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(fd string) bool {
		target, err := os.Readlink(fd)
		return err != nil || !strings.HasPrefix(target, path)
	})
}

func TestTouchingTheFileDoesNotFixAConfiguration(t *testing.T) {
	t.Parallel()
	v, h, rolledBack := misconfigured(t)
	for range 2 { // even when the reason why the file does not serve is known
		now := time.Now().Add(time.Second)
		require.NoError(t, os.Chtimes(v.path, now, now))
		for range 20 { // for longer than a file must be stable
			require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":20}`).Kind)
		}
		require.NoError(t, h.Disable(t.Context(), "plugin"))
		require.NoError(t, h.Enable(t.Context(), "plugin", false))
		require.Equal(t, job.Success, h.run("plugin", `{}`).Kind, "as it was configured before")
		require.NotEmpty(t, h.status("plugin").SkipReason)
	}
	require.Equal(t, rolledBack, *h.status("plugin").LastSwap)
}

// The file of the serving version returns, but under a configuration that was rejected.
func TestReplacingTheFileDoesNotFixAConfiguration(t *testing.T) {
	t.Parallel()
	v, h, rolledBack := misconfigured(t)
	for _, version := range []string{"2", "1"} {
		v.install("-version", version)
		rolledBack = h.awaitSwap(&rolledBack)
		require.Equal(t, job.SwapRolledBack, rolledBack.Result)
	}
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind, "as it was configured before")
	require.Equal(t, rolledBack, *h.status("plugin").LastSwap)
}

func TestDisablingDuringARollbackKeepsTheVersionThatServedLast(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1", "-mode", "slow")
	h := v.serve(promoting)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	v.install("-version", "2", "-mode", "exit")
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	h.eventually(func() bool {
		s := h.status("plugin")
		return s.LastSwap != nil && s.LastSwap.Trigger == job.SwapByFailure && s.Candidate != nil
	}, "it goes back")
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	h.eventually(func() bool { return h.status("plugin").Version == "1" }, "what served last serves")
}

func TestEnablingSaysWhyTheLastVersionCannotServe(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.script("-version", "1")
	h := v.serve(promoting)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	v.script("-version", "2", "-mode", "exit")
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, job.SwapRolledBack, h.awaitSwap(nil).Result)
	rolledBack := time.Now()
	forgotten, seen := false, make(chan bool)
	h.eventually(func() bool {
		h.fleet("plugin").order(func(c *conductor) { seen <- c.rejected.digest == "" })
		forgotten = <-seen || forgotten
		return time.Since(rolledBack) > 500*time.Millisecond
	}, "the conductor looks at a file that is still")
	require.False(t, forgotten, "it is still rejected when the conductor looks at it")
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	require.ErrorContains(t, h.Enable(t.Context(), "plugin", false), "the version that served before cannot be launched: ")
}

func TestAnEnabledVersionThatNeverComesUpIsNamedByItsDigest(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting)
	v.install("-version", "2")
	require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	v.install("-version", "3", "-mode", "exit")
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.NotEqual(t, "2", h.status("plugin").Version, "the name is not that of the version before")
	last := h.awaitSwap(h.status("plugin").LastSwap)
	require.Equal(t, job.SwapByFailure, last.Trigger)
	require.Equal(t, v1.PluginVersion{SHA256: checksum(t, v.path)}, last.From, "the name is not that of the version before")
	require.Contains(t, last.Reason, "the version with the SHA-256 "+checksum(t, v.path)[:12]+"… kept failing soon after it was enabled: it ended during its start")
}

func TestAnEnabledVersionThatFailsIsReplacedByTheLastOne(t *testing.T) {
	t.Parallel()
	for _, promoted := range []bool{true, false} {
		v := newVersioned(t)
		v.install("-version", "1")
		if !promoted { // as if its probation were over
			v.install("-version", "2")
		}
		h := v.serve(promoting)
		if promoted {
			v.install("-version", "2")
			require.Equal(t, job.SwapPromoted, h.awaitSwap(nil).Result)
		}
		before := h.status("plugin").LastSwap
		require.NoError(t, h.Disable(t.Context(), "plugin"))
		v.install("-version", "3", "-mode", "exit")
		require.NoError(t, h.Enable(t.Context(), "plugin", false))
		require.Equal(t, job.SwapByFailure, h.awaitSwap(before).Trigger)
		require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
		require.Equal(t, "2", h.status("plugin").Version)
	}
}

func TestAVersionThatIsEnabledAgainStaysOnProbation(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t, promoting)
	text, spent := stingy(t, "2", "exit 1")
	v.write(text)
	promoted := h.awaitSwap(nil)
	require.Equal(t, job.SwapPromoted, promoted.Result)
	require.NoError(t, h.Disable(t.Context(), "plugin"))
	spent(true)
	require.NoError(t, h.Enable(t.Context(), "plugin", false))
	require.Equal(t, "1", h.awaitSwap(&promoted).To.Version)
}

func TestAFileThatCannotBeReadIsSkippedWithAWarning(t *testing.T) {
	t.Parallel()
	v, h := versionOne(t)
	for reason, put := range map[string]func(){
		v.path + ": no such file or directory": func() {},
		v.path + " is not a file":              func() { require.NoError(t, os.Mkdir(v.path, 0o700)) },
	} {
		before := len(h.journal.String())
		require.NoError(t, os.Remove(v.path))
		put()
		h.eventually(func() bool { return strings.Contains(h.status("plugin").SkipReason, reason) }, reason)
		for range 20 {
			require.Equal(t, job.Success, h.run("plugin", `{"do":"sleep","ms":10}`).Kind)
		}
		require.Equal(t, 1, strings.Count(h.journal.String()[before:], reason), "it is said once")
		require.Nil(t, h.status("plugin").LastSwap)
		require.NoError(t, os.RemoveAll(v.path))
		v.install("-version", "1")
		h.eventually(func() bool { return h.status("plugin").SkipReason == "" }, "it is what serves again")
	}
}
