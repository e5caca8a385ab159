package host

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/trial"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// onTrial starts version 1 of a plugin, and then a trial of version 2, which gets all
// attempts for the period. The channel gets the result of the swap.
func onTrial(t *testing.T, period time.Duration, change func(*Settings)) (*testHost, <-chan v1.PluginSwap) {
	t.Helper()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Watch, config.Canary = false, Canary{Share: 1, Period: period}
	h := startHost(t, change, config)
	h.awaitUp("plugin", 1)
	v.install("-version", "2")
	done := make(chan v1.PluginSwap, 1)
	go func() {
		s, err := h.Swap(t.Context(), "plugin", false)
		if err == nil {
			done <- s
		}
	}()
	h.awaitTrial()
	return h, done
}

func (h *testHost) awaitTrial() {
	h.t.Helper()
	h.eventually(func() bool {
		next := h.status("plugin").Candidate
		return next != nil && next.State == job.CandidateCanary && len(next.PIDs) > 0
	}, "the new version is on trial")
}

// A process that closes its stream has some time to show why it ends. The trial ends in
// that time.
func TestADeadCandidateIsNotPromoted(t *testing.T) {
	t.Parallel()
	const period = 12 * time.Second // longer than two attempts need to begin on a busy machine
	h, done := onTrial(t, period, func(s *Settings) { s.ExitWindow = period * 3 / 2 })
	_, bystander := h.begin("plugin", do("ignore"))
	require.Equal(t, 1, h.status("plugin").Candidate.Running)
	_, guilty := h.begin("plugin", do("close-stream"))
	s := <-done
	require.Equal(t, job.SwapRolledBack, s.Result)
	require.Contains(t, s.Reason, "stream closed")
	for _, r := range []*report{bystander, guilty} {
		outcome := h.outcome(r)
		require.Equal(t, job.Released, outcome.Kind)
		require.Equal(t, message.CodeCanary, outcome.Code)
	}
}

func TestAPoisonJobDoesNotRollBackAGoodVersion(t *testing.T) {
	t.Parallel()
	h, done := onTrial(t, 12*time.Second, nil) // longer than 20 attempts take on a busy machine
	for range 20 {
		require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	}
	_, bystander := h.begin("plugin", do("ignore"))
	for _, outcome := range []job.Outcome{h.run("plugin", do("exit")), h.outcome(bystander)} {
		require.Equal(t, job.Crash, outcome.Kind, "whoever was there is suspected")
		require.Equal(t, 1, outcome.CoResidents)
	}
	s := <-done
	require.Equal(t, job.SwapPromoted, s.Result, s.Reason)
	require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	require.Equal(t, "2", h.status("plugin").Version)
}

// An attempt that began in the trial may kill its process just after the trial was passed.
func TestOneDeathIsExcusedUntilTheCandidateServes(t *testing.T) {
	t.Parallel()
	proven := trial.Tally{Ended: provenBy + 1, Failed: 1}
	for state, excused := range map[deployState]bool{
		stateStarting: false, stateCanary: true, statePromoting: true,
	} {
		f, g := &fleet{deploy: deploy{state: state}}, &generation{trial: proven}
		require.Equal(t, excused, f.excuses(g), state)
		require.False(t, f.excuses(g), "the second death, %s", state)
	}
	f := &fleet{deploy: deploy{state: statePromoting}}
	require.False(t, f.excuses(&generation{}), "nothing has succeeded on it")
}

func TestTheSecondDeathOnTrialRollsBackAndIsNotCharged(t *testing.T) {
	t.Parallel()
	h, done := onTrial(t, time.Hour, nil)
	for range provenBy {
		require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	}
	require.Equal(t, job.Crash, h.run("plugin", do("exit")).Kind)
	h.awaitTrial()
	outcome := h.run("plugin", do("exit"))
	require.Equal(t, job.Released, outcome.Kind)
	require.Equal(t, message.CodeCanary, outcome.Code)
	s := <-done
	require.Equal(t, job.SwapRolledBack, s.Result)
	require.Contains(t, s.Reason, "exit status 3")
}

func TestADoubtfulVersionGetsHalfOfTheWorkAndIsFinallyRolledBack(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.install("-version", "1")
	config := v.config()
	config.Watch, config.Canary = false, Canary{Share: 0.01, Period: 3 * time.Second} // long enough for the first job
	h := startHost(t, nil, config)
	h.awaitUp("plugin", 1)
	old := h.status("plugin").PIDs[0]
	v.install("-version", "2")
	done := make(chan v1.PluginSwap, 1)
	go func() {
		if s, err := h.Swap(t.Context(), "plugin", false); err == nil {
			done <- s
		}
	}()
	h.awaitTrial()
	require.Equal(t, message.CodeCanary, h.run("plugin", do("fail")).Code, "the first job is the candidate's")
	f := h.fleet("plugin")
	h.eventually(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.share == largerShare
	}, "it gets more to do")
	ran := map[bool]int{}
	for range 20 {
		ran[identityOf(t, h.run("plugin", do("identity"))).PID == old]++
	}
	require.InDelta(t, 10, ran[true], 1)
	s := <-done
	require.Equal(t, job.SwapRolledBack, s.Result)
	require.Contains(t, s.Reason, "it may fail more often, and the trial was too short to be sure: ")
	require.Greater(t, s.EndedAt.Sub(s.BegunAt), longestTrial*config.Canary.Period)
}

// compared starts version 1 of a plugin, whose attempts take the usual time, and then a
// trial of version 2 with the flags, which gets half of the attempts. It returns the
// result of the swap.
func compared(t *testing.T, usual time.Duration, flags ...string) (*testHost, v1.PluginSwap) {
	t.Helper()
	v := newVersioned(t)
	v.install("-version", "1", "-delay", usual.String())
	config := v.config()
	config.Watch, config.Canary = false, Canary{Share: 0.5, Period: 5 * time.Second, MaxSlowdown: 3}
	h := startHost(t, func(s *Settings) { s.DrainTimeout = 100 * time.Millisecond }, config)
	h.awaitUp("plugin", 1)
	for range 12 {
		require.Equal(t, job.Success, h.run("plugin", `{}`).Kind)
	}
	v.install(append(flags, "-version", "2")...)
	done := make(chan v1.PluginSwap, 1)
	go func() {
		if s, err := h.Swap(t.Context(), "plugin", false); err == nil {
			done <- s
		}
	}()
	// The load is there before the trial, which a busy machine may notice late.
	slots := make(chan struct{}, 6)
	var load sync.WaitGroup
	defer load.Wait()
	for {
		select {
		case s := <-done:
			return h, s
		case slots <- struct{}{}:
			load.Go(func() {
				defer func() { <-slots }()
				r := newReport()
				if _, err := h.Start("plugin", assignment(`{}`), r); err == nil {
					<-r.done
				}
			})
		}
	}
}

func TestASlowVersionIsRolledBack(t *testing.T) {
	t.Parallel()
	h, swap := compared(t, 10*time.Millisecond, "-delay", "5s") // far longer than a busy machine takes for the others
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Regexp(t, `^it is slower: \d+ of its \d+ attempts at TEST t(ake|ook) `, swap.Reason)
	require.Zero(t, swap.Trial.Failed)
	if strings.HasSuffix(swap.Reason, "none has succeeded") {
		require.Nil(t, swap.Trial.Slowest)
	} else {
		require.Equal(t, "TEST", swap.Trial.Slowest.JobType)
		require.Less(t, 3*swap.Trial.Slowest.ServingMedianSeconds, swap.Trial.Slowest.MedianSeconds)
	}
	require.Equal(t, "1", h.status("plugin").Version)
}

// Its attempts have not ended when the period is over.
func TestAVersionThatGetsNothingDoneIsRolledBack(t *testing.T) {
	t.Parallel()
	_, swap := compared(t, 10*time.Millisecond, "-delay", "1h")
	require.Equal(t, job.SwapRolledBack, swap.Result)
	require.Contains(t, swap.Reason, "and none has succeeded")
}

func TestAVersionThatIsSlowOnlyAtFirstIsPromoted(t *testing.T) {
	t.Parallel()
	// An attempt is slow after 1.5 s. A busy machine holds a process up for less.
	_, swap := compared(t, 500*time.Millisecond, "-delay", "500ms", "-cold", "3s")
	require.Equal(t, job.SwapPromoted, swap.Result, swap.Reason)
}
