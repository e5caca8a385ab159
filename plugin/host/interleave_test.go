package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What happens to a plugin in a random order, from several goroutines at once: every
// event is one that the table of deploys allows, and the plugin still works at the end.
// It is not parallel: it would slow down tests that compare durations.
func TestOperationsMayComeInAnyOrder(t *testing.T) {
	const operators, each = 3, 12
	v := newVersioned(t)
	v.install("-version", "0")
	config := v.config()
	config.Processes = 2
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 2)
	moved := config
	moved.Path = filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Link(v.path, moved.Path))
	var files sync.Mutex
	install := func(flags ...string) {
		files.Lock()
		defer files.Unlock()
		v.install(flags...)
	}
	operations := []func(ctx context.Context, random *rand.Rand){
		func(_ context.Context, r *rand.Rand) { install("-version", fmt.Sprint(r.IntN(1000))) },
		func(context.Context, *rand.Rand) { install("-version", "bad", "-mode", "exit") },
		func(context.Context, *rand.Rand) { install("-version", "bad", "-failing", "1") },
		func(ctx context.Context, _ *rand.Rand) { _, _ = h.Swap(ctx, "plugin", true) },
		func(ctx context.Context, _ *rand.Rand) { _, _ = h.Restart(ctx, "plugin") },
		func(ctx context.Context, _ *rand.Rand) { _ = h.Disable(ctx, "plugin") },
		func(ctx context.Context, _ *rand.Rand) { _ = h.Enable(ctx, "plugin", true) },
		func(ctx context.Context, _ *rand.Rand) { _ = h.Enable(ctx, "plugin", false) },
		func(context.Context, *rand.Rand) { _ = h.Reload([]Config{config}) },
		func(context.Context, *rand.Rand) { _ = h.Reload([]Config{moved}) },
		func(context.Context, *rand.Rand) {
			for _, pid := range processesOf(h.dir) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		},
		func(context.Context, *rand.Rand) {
			r := newReport()
			if _, err := h.Start("plugin", assignment(`{"do":"sleep","ms":5}`), r); err == nil {
				<-r.done
			}
		},
	}
	var running sync.WaitGroup
	for operator := range uint64(operators) {
		random := rand.New(rand.NewPCG(operator, 1))
		running.Go(func() {
			for range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(400))*time.Millisecond)
				operations[random.IntN(len(operations))](ctx, random)
				<-ctx.Done() // what it began goes on while the next one begins
				cancel()
			}
		})
	}
	running.Wait()
	require.NoError(t, h.Reload([]Config{config}))
	install("-version", "last")
	require.NoError(t, h.Enable(t.Context(), "plugin", true))
	h.eventually(func() bool {
		s := h.status("plugin")
		return s.State == job.PluginUp && s.Version == "last" && s.Candidate == nil
	}, "the last version serves")
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)

	install("-version", "never")
	h.eventually(func() bool {
		s := h.status("plugin")
		return s.Candidate != nil || s.Version == "never"
	}, "a swap begins")
	h.closeWithin(5 * time.Second)
	require.NotContains(t, h.journal.String(), "plugin deploy went wrong")
	require.NotContains(t, h.journal.String(), "does not take the event")
}
