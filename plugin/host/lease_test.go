package host

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestNothingOfAStoppedHostRunsLongerThanItsLease(t *testing.T) {
	for _, cgroup := range []string{CgroupAuto, CgroupNone} {
		t.Run("cgroup "+cgroup, func(t *testing.T) {
			t.Parallel()
			const lease = 5 * time.Second
			before := time.Now()
			host, family := victim{mode: "cunning", cgroup: cgroup, lease: lease}.run(t, socketDir(t))
			begun := time.Now()
			require.NoError(t, host.Signal(syscall.SIGSTOP))
			require.Eventually(t, func() bool { return !slices.ContainsFunc(family, alive) },
				time.Minute, time.Millisecond, "something runs on")
			require.Greater(t, time.Since(before), lease*3/4, "a short pause does no harm")
			// A busy machine may need longer than the reserve to kill them.
			require.Less(t, time.Since(begun), 4*lease)
		})
	}
}

func TestAProcessIsNotKilledWhileItsLeasesAreExtended(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	leased := assignment(do("fail-when-canceled"))
	leased.LeaseFor = 4 * time.Second
	r := newReport()
	run, err := h.Start("good", leased, r)
	require.NoError(t, err)
	run.Extend(time.Minute)
	select {
	case outcome := <-r.done:
		t.Fatal(outcome)
	case <-time.After(leased.LeaseFor):
	}
	run.Cancel(job.CancelTimeout)
	require.Equal(t, "late", h.outcome(r).Code)
	require.Zero(t, h.status("good").Restarts)
}

func TestAStalledHostChargesNobody(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	h.awaitUp("good", 1)
	late := assignment(do("ignore"))
	late.LeaseFor = 0
	r := newReport()
	_, err := h.Start("good", late, r)
	require.NoError(t, err)
	outcome := h.outcome(r)
	require.Equal(t, job.Released, outcome.Kind)
	require.Equal(t, string(osprocess.Stalled), outcome.Code)
	require.Contains(t, outcome.Message, "the orchestrator did not run")
	h.eventually(func() bool { return h.status("good").Restarts == 1 }, "another is launched")
	require.Zero(t, h.status("good").Crashes)
	h.awaitUp("good", 1)
}
