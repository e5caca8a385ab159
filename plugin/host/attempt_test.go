package host

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnAttemptEndsAsItsHandlerSays(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	for payload, want := range map[string]job.Outcome{
		`{"n":7}`:              {Kind: job.Success, Result: json.RawMessage(`{"n":7}`)},
		`{"do":"sleep"}`:       {Kind: job.Success},
		do("fail"):             {Kind: job.Failure, Code: "c", Message: "m", Stack: "s", RetryAfter: new(1500 * time.Millisecond)},
		do("fail-permanently"): {Kind: job.PermanentFailure, Code: "c"},
		do("snooze"):           {Kind: job.Snoozed, RetryAfter: new(message.Longest)},
		do("cancel-itself"):    {Kind: job.CancelConfirmed},
		do("nothing"):          message.ProtocolFailure("the plugin process reported an outcome without a result"),
		do("bad-result"):       message.ProtocolFailure("the handler's result is not JSON in UTF-8"),
	} {
		require.Equal(t, want, h.run("good", payload), payload)
	}
	require.Zero(t, h.status("good").Restarts)
}

func TestACancelDecidesWhatAnEndMeans(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	late := job.Outcome{Kind: job.Failure, Code: "late", Message: "stopped in the middle"}
	lateTimeout := late
	lateTimeout.Kind = job.Timeout
	madeIt := job.Outcome{Kind: job.Success, Result: json.RawMessage(`"made it"`)}
	for _, c := range []struct {
		reason job.CancelReason
		do     string
		want   job.Outcome
	}{
		{job.CancelRequested, "sleep", job.Outcome{Kind: job.CancelConfirmed}},
		{job.CancelTimeout, "sleep", job.Outcome{Kind: job.Timeout}},
		{job.CancelShutdown, "sleep", job.Outcome{Kind: job.Released}},
		{job.CancelLeaseLost, "sleep", job.Outcome{Kind: job.Released}},
		{job.CancelRequested, "fail-when-canceled", late},
		{job.CancelTimeout, "fail-when-canceled", lateTimeout},
		{job.CancelTimeout, "succeed-when-canceled", madeIt},
		{job.CancelShutdown, "succeed-when-canceled", madeIt},
	} {
		run, r := h.begin("good", fmt.Sprintf(`{"do":%q,"ms":60000}`, c.do))
		run.Cancel(c.reason)
		run.Cancel(job.CancelRequested) // only the first reason counts
		require.Equal(t, c.want, h.outcome(r), "%s, %s", c.do, c.reason)
	}
}

func TestARunThatHasEndedIgnoresCalls(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	run, r := h.begin("good", `{}`)
	h.outcome(r)
	run.Cancel(job.CancelTimeout)
	run.Extend(time.Minute)
	run.Kill()
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	require.Zero(t, h.status("good").Restarts, "the process was killed")
}

func TestProgressCheckpointsAndLogsComeBeforeTheEnd(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	_, r := h.begin("good", do("tell"))
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Equal(t, "50", string(<-r.told))
	require.Empty(t, r.told, "progress that is not JSON is dropped")
	require.Equal(t, []string{`{"at":7}`}, r.checkpoints)
	require.Contains(t, h.journal.String(), `"level":"WARN","msg":"told","plugin":"good"`)
	require.Contains(t, h.journal.String(), `"job_type":"TEST","attempt":1,"fence":7,"attributes":{"k":1}`)
	require.Len(t, r.logged, 1)
	require.Equal(t, job.LogWarn, r.logged[0].Level)
	require.Equal(t, "told", r.logged[0].Message)
	require.JSONEq(t, `{"k":1}`, string(r.logged[0].Attributes))
	require.WithinDuration(t, time.Now(), r.logged[0].Time, time.Minute)
}

func TestASecondOutcomeIsIgnored(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, misbehaving("good"))
	_, r := h.begin("good", do("twice"))
	require.Equal(t, "1", string(h.outcome(r).Result))
	h.eventually(func() bool {
		return strings.Count(h.journal.String(), "an attempt that is not running") == 2
	}, "the second outcome is noticed")
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	require.EqualValues(t, 1, r.finished.Load())
	require.Equal(t, DefaultConcurrency, h.free("good"))
}

func TestAPayloadMayBeLargeButNotLargerThanAMessage(t *testing.T) {
	t.Parallel()
	// A message of 64 MiB takes a while on a busy machine.
	h := startHost(t, func(s *Settings) { s.HealthTimeout, s.Caps.Result = time.Minute, 5<<20 }, misbehaving("good"))
	payload := func(size int) string {
		head, tail := `{"do":"measure","x":"`, `"}`
		return head + strings.Repeat("p", size-len(head)-len(tail)) + tail
	}
	require.Equal(t, fmt.Sprint(5<<20), string(h.run("good", payload(5<<20)).Result))
	empty := assignment("")
	most := protocol.MaxMessageBytes - message.StartBytes(&empty)
	require.Equal(t, fmt.Sprint(most), string(h.run("good", payload(most)).Result))

	over := h.run("good", payload(most+1))
	require.Equal(t, job.PermanentFailure, over.Kind)
	require.Equal(t, message.CodeTooLarge, over.Code)
	require.Equal(t, job.Success, h.run("good", fmt.Sprintf(`{"do":"big","n":%d}`, 5<<20)).Kind, "a result as large as its cap")
	require.Zero(t, h.status("good").Restarts)
}

func TestAResultThatIsTooLargeEndsTheProcessNotTheHost(t *testing.T) {
	t.Parallel()
	h := startHost(t, func(s *Settings) { s.HealthTimeout = time.Minute }, misbehaving("good"))
	outcome := h.run("good", fmt.Sprintf(`{"do":"big","n":%d}`, protocol.MaxMessageBytes))
	require.Contains(t, []job.OutcomeKind{job.Crash, job.Failure}, outcome.Kind)
	require.Equal(t, job.Success, h.run("good", `{}`).Kind)
}

func TestNoSlotIsLostOrAddedUnderLoad(t *testing.T) {
	t.Parallel()
	config := misbehaving("good", "-concurrency", "7")
	config.Processes = 3
	h := startHost(t, nil, config)
	h.awaitUp("good", 3)
	require.Equal(t, 21, h.free("good"))

	var started, ended atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		wg.Go(func() {
			for range 300 {
				what := []string{"", "sleep", "fail", "cancel-itself", "twice", "tell"}[random.IntN(6)]
				payload := fmt.Sprintf(`{"do":%q,"ms":%d}`, what, random.IntN(5))
				r := newReport()
				run, err := h.Start("good", assignment(payload), r)
				if err != nil {
					<-h.Changed()
					h.changed.Raise() // more attempts are waiting
					continue
				}
				started.Add(1)
				if free := h.free("good"); free < 0 || free > 21 {
					t.Errorf("%d of 21 slots are free", free)
				}
				if random.IntN(4) == 0 {
					run.Cancel(job.CancelTimeout)
				}
				run.Extend(time.Minute)
				if random.IntN(3) > 0 {
					wg.Go(func() { <-r.done; ended.Add(1) })
					continue
				}
				<-r.done
				ended.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, started.Load(), ended.Load())
	require.Greater(t, started.Load(), int64(100))
	require.Equal(t, 21, h.free("good"))
	require.Zero(t, h.status("good").Running)
	require.Zero(t, h.status("good").Restarts)
}

func TestNoProcessExceedsItsConcurrency(t *testing.T) {
	t.Parallel()
	config := misbehaving("good", "-concurrency", "100")
	config.Concurrency = 2
	h := startHost(t, nil, config)
	first, r1 := h.begin("good", `{"do":"sleep","ms":60000}`)
	_, r2 := h.begin("good", `{"do":"sleep","ms":60000}`)
	require.Zero(t, h.free("good"))
	require.Zero(t, h.status("good").Free)
	require.Len(t, h.Pools(), 1, "a full plugin is listed")
	third := newReport()
	_, err := h.Start("good", assignment(`{}`), third)
	require.ErrorIs(t, err, ErrNoSlot)
	_, err = h.Start("unheard of", assignment(`{}`), third)
	require.ErrorIs(t, err, ErrNoSlot)

	first.Cancel(job.CancelRequested)
	require.Equal(t, job.CancelConfirmed, h.outcome(r1).Kind)
	require.Equal(t, 1, h.free("good"))
	require.Equal(t, 1, h.status("good").Free)
	require.Zero(t, third.finished.Load())
	require.Zero(t, r2.finished.Load())
}

func TestTheLeastLoadedProcessIsChosen(t *testing.T) {
	t.Parallel()
	config := misbehaving("good")
	config.Processes, config.Concurrency = 2, 3
	h := startHost(t, nil, config)
	h.awaitUp("good", 2)
	for range 4 {
		h.begin("good", `{"do":"sleep","ms":60000}`)
	}
	for _, p := range h.fleet("good").current.live {
		require.Equal(t, 2, p.inFlight)
	}
}
