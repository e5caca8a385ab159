package osprocess

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
)

func TestWhatAProcessUsesIsMeasuredWithItsChildren(t *testing.T) {
	everywhere(t, func(t *testing.T, tree *cgroup.Tree) {
		// tail keeps a line until its end, and a child has been busy when the line is there.
		script := `{ i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; head -c 60000000 /dev/zero; echo full >&2; sleep 60; } | tail -n 1`
		p := prepared(t, Spec{Args: []string{"-c", script}, Cgroups: tree})
		_, up := p.Use()
		require.False(t, up, "it has not started")
		require.NoError(t, p.Start(t.Context()))
		require.Eventually(t, func() bool { return strings.Contains(p.Output().Excerpt(), "full") }, time.Minute, 10*time.Millisecond)

		before := time.Now()
		use, up := p.Use()
		require.True(t, up)
		require.Equal(t, p.PID(), use.PID)
		require.GreaterOrEqual(t, use.Memory, int64(40<<20), "most of what tail keeps")
		require.Zero(t, use.Memory%(1<<20))
		require.GreaterOrEqual(t, use.Processes, int64(3))
		require.Zero(t, use.CPUs, "there is nothing to compare with")
		again, _ := p.Use()
		require.True(t, again == use || time.Since(before) >= useEvery, "it is measured at most every few seconds")

		// As if it had been measured before the child was busy.
		p.gauge.at, p.gauge.busy = time.Now().Add(-2*useEvery), 0
		use, _ = p.Use()
		require.Positive(t, use.CPUs)

		p.End()
		require.True(t, p.Await(time.Minute))
		_, up = p.Use()
		require.False(t, up)
	})
}
