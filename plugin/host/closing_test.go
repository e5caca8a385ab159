package host

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Opening a pipe, or reading a device, could block the plugin's conductor for ever.
func TestAPathThatIsNotAFileBlocksNothing(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o755) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			v, h := versionOne(t)
			require.NoError(t, os.Remove(v.path))
			require.NoError(t, put(v.path))
			h.eventually(func() bool { return strings.HasSuffix(h.status("plugin").SkipReason, " is not a file") }, "the conductor looks at it")
			swap := h.swap(false)
			require.Equal(t, job.SwapRefused, swap.Result)
			require.Equal(t, v.path+" is not a file", swap.Reason)

			v.install("-version", "2")
			require.Equal(t, job.SwapPromoted, h.awaitSwap(&swap).Result)
			require.Equal(t, "2", h.status("plugin").Version)
		})
	}
}

func TestCloseDoesNotWaitForeverForAnUnkillableProcess(t *testing.T) {
	dir := socketDir(t)
	synctest.Test(t, func(t *testing.T) {
		settings := testSettings(dir, t.Output())
		settings.Log, settings.Cgroup = slog.New(slog.DiscardHandler), CgroupNone
		h, err := Start(t.Context(), settings, nil)
		require.NoError(t, err)
		hung := make(chan struct{})
		h.running.Go(func() { <-hung })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		require.ErrorContains(t, h.Close(ctx), "some plugin processes are still there 12s after they were killed")
		require.Equal(t, time.Second+closeTimeout, time.Since(begun))
		close(hung)
		require.NoError(t, h.Close(ctx))
	})
}
