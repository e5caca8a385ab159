package host

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// counting counts reports, and keeps the last of them.
type counting struct {
	*report
	heard atomic.Int64
	last  atomic.Pointer[json.RawMessage]
	room  chan struct{}
}

func (c *counting) Progress(value json.RawMessage) <-chan struct{} {
	c.heard.Add(1)
	c.last.Store(&value)
	return c.room
}

func (c *counting) Log(job.LogLine) { c.heard.Add(1) }

func (h *testHost) beginCounting(name, payload string, room chan struct{}) (job.Run, *counting) {
	h.t.Helper()
	h.awaitUp(name, 1)
	c := &counting{report: newReport(), room: room}
	run, err := h.Start(name, assignment(payload), c)
	require.NoError(h.t, err)
	return run, c
}

// flooding runs the flood, and at the same time jobs of another plugin. It returns how
// many reports arrived in a second.
func flooding(t *testing.T, h *testHost, payload string) float64 {
	t.Helper()
	began := time.Now()
	run, c := h.beginCounting("flood", payload, nil)
	defer run.Kill()
	others := 0
	for len(c.done) == 0 {
		require.Equal(t, job.Success, h.run("good", `{}`).Kind)
		others++
	}
	require.Equal(t, job.Success, h.outcome(c.report).Kind)
	require.Positive(t, others)
	return float64(c.heard.Load()) / time.Since(began).Seconds()
}

func TestAProcessThatReportsWithoutEndIsReadMoreSlowly(t *testing.T) {
	h := startHost(t, nil, misbehaving("flood"), misbehaving("good", "-types", "OTHER"))
	h.awaitUp("good", 1)
	const most = 20_000 // a second; without delays it is ten times that
	for _, what := range []string{"flood", "flood-logs"} {
		require.Less(t, flooding(t, h, fmt.Sprintf(`{"do":%q,"ms":2000}`, what)), float64(most), what)
	}
	require.Zero(t, h.status("flood").Restarts)
}

func TestTheLastReportAndTheOutcomeOfAFloodArrive(t *testing.T) {
	h := startHost(t, nil, misbehaving("flood"))
	_, c := h.beginCounting("flood", `{"do":"flood","ms":500}`, nil)
	outcome := h.outcome(c.report)
	sent, err := strconv.Atoi(string(outcome.Result))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(sent-1), string(*c.last.Load()))
	require.EqualValues(t, sent, c.heard.Load())
}

func TestAProcessIsNotReadWhileThereIsNoRoom(t *testing.T) {
	h := startHost(t, nil, misbehaving("flood"), misbehaving("good", "-types", "OTHER"))
	h.awaitUp("good", 1)
	room := make(chan struct{})
	run, c := h.beginCounting("flood", `{"do":"flood","ms":60000}`, room)
	h.eventually(func() bool { return c.heard.Load() == 1 }, "the first report")
	run.Cancel(job.CancelRequested)
	for range 20 {
		require.Equal(t, job.Success, h.run("good", `{}`).Kind)
	}
	require.EqualValues(t, 1, c.heard.Load())
	close(room)
	require.Equal(t, job.Success, h.outcome(c.report).Kind, "the rest is read")
	require.Zero(t, h.status("flood").Restarts)
}

func TestNothingWaitsForRoomAfterTheProcessDied(t *testing.T) {
	h := startHost(t, nil, misbehaving("flood"))
	run, c := h.beginCounting("flood", `{"do":"flood","ms":60000}`, make(chan struct{}))
	h.eventually(func() bool { return c.heard.Load() == 1 }, "the first report")
	run.Kill()
	require.Equal(t, job.Crash, h.outcome(c.report).Kind)
}

// The outcome is in the socket while the process is not read, and when it exits.
func TestAnOutcomeIsReadWithoutRoomOnceTheProcessIsGone(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.ExitWindow = time.Hour }, misbehaving("plain", "-mode", "plain"))
	_, c := h.beginCounting("plain", do("tell"), make(chan struct{}))
	h.eventually(func() bool { return c.heard.Load() > 0 }, "the report")
	require.Equal(t, `"finished"`, string(h.run("plain", do("finish-and-exit")).Result))
	require.Equal(t, job.Success, h.outcome(c.report).Kind)
}

func TestProgressThatIsTooLargeIsDroppedAndLogged(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.Caps.Progress = 1000 }, misbehaving("good"))
	_, r := h.begin("good", `{"do":"big-progress","n":1000}`)
	require.Equal(t, job.Success, h.outcome(r).Kind)
	require.Len(t, h.progress(r), 1000)
	for _, size := range []int{1001, 30 << 20} {
		_, r = h.begin("good", fmt.Sprintf(`{"do":"big-progress","n":%d}`, size))
		require.Equal(t, job.Success, h.outcome(r).Kind)
		require.Empty(t, r.told)
		require.Len(t, r.logged, 1)
		require.Equal(t, job.LogWarn, r.logged[0].Level)
		require.Equal(t, "progress was dropped: it is larger than 1000 bytes", r.logged[0].Message)
	}
	require.Contains(t, h.journal.String(), `"msg":"plugin reports a value that is too large"`)
}

func TestMoreFollowUpsThanAreTakenFailPermanently(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.Caps.FollowUps, s.Caps.FollowUpBytes = 2000, 3000 }, misbehaving("good"))
	require.Len(t, h.run("good", `{"do":"submit","n":1500}`).FollowUps, 1500)
	refused := func(message string) job.Outcome {
		return job.Outcome{Kind: job.PermanentFailure, Code: "followups_too_large", Message: message}
	}
	require.Equal(t, refused("the jobs that the handler submitted have together more than 3000 bytes"), h.run("good", `{"do":"submit","n":1501}`))
	// The last ones are in a message that is read in parts.
	for _, n := range []int{2001, 1_000_000} {
		require.Equal(t, refused("the handler submitted more than 2000 jobs"), h.run("good", fmt.Sprintf(`{"do":"submit","n":%d}`, n)))
	}
	require.Zero(t, h.status("good").Restarts)
}

func TestACheckpointOrResultThatIsTooLargeFailsPermanently(t *testing.T) {
	h := startHost(t, func(s *Settings) { s.Caps.Checkpoint, s.Caps.Result = 1000, 2000 }, misbehaving("good"))
	for payload, want := range map[string]job.Outcome{
		`{"do":"big-checkpoint","n":1001}`:     {Kind: job.PermanentFailure, Code: message.CodeCheckpointTooLarge, Message: "a checkpoint is larger than 1000 bytes"},
		`{"do":"big-checkpoint","n":41943040}`: {Kind: job.PermanentFailure, Code: message.CodeCheckpointTooLarge, Message: "a checkpoint is larger than 1000 bytes"},
		`{"do":"big","n":2001}`:                {Kind: job.PermanentFailure, Code: message.CodeResultTooLarge, Message: "the result is larger than 2000 bytes"},
		`{"do":"big","n":41943040}`:            {Kind: job.PermanentFailure, Code: message.CodeResultTooLarge, Message: "the result is larger than 2000 bytes"},
	} {
		require.Equal(t, want, h.run("good", payload), payload)
	}
	require.Equal(t, job.Success, h.run("good", `{"do":"big","n":2000}`).Kind)
	run, r := h.begin("good", `{"do":"big-checkpoint","n":1000}`)
	h.eventually(func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.checkpoints) == 1
	}, "it fits")
	run.Cancel(job.CancelRequested)
	require.Equal(t, job.CancelConfirmed, h.outcome(r).Kind)
	require.Zero(t, h.status("good").Restarts)
}

func TestInvalidCapsAreRefused(t *testing.T) {
	settings := testSettings(socketDir(t), &journal{})
	for _, change := range []func(*Caps){
		func(c *Caps) { c.Progress = 0 },
		func(c *Caps) { c.Checkpoint = MaxCap + 1 },
		func(c *Caps) { c.Result = -1 },
	} {
		settings.Caps = DefaultCaps()
		change(&settings.Caps)
		_, err := Start(t.Context(), settings, nil)
		require.ErrorContains(t, err, "is not from 1 to 33554432")
	}
}

// A message must not take much more memory than its size.
func TestALargeMessageTakesLittleMoreMemoryThanItsSize(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	for payload, most := range map[string]uint64{
		`{"do":"big-log","n":10000000}`:      30 << 20,
		`{"do":"big-progress","n":30000000}`: 60 << 20,
		`{"do":"crowd","n":1000000}`:         40 << 20, // 7 MB on the wire
	} {
		run, c := h.beginCounting("good", payload, nil)
		peak := peakHeap(func() bool { return len(c.done) > 0 })
		require.Equal(t, job.Success, h.outcome(c.report).Kind, payload)
		require.Less(t, peak, most, payload)
		run.Kill()
	}
}

// heap is the size of the reachable memory, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peakHeap is the largest growth of the reachable memory while run runs.
func peakHeap(over func() bool) uint64 {
	before := heap()
	peak := before
	for !over() {
		peak = max(peak, heap())
	}
	return peak - before
}

func TestALongLogLineDoesNotStayInMemory(t *testing.T) {
	h := startHost(t, nil, misbehaving("good"))
	var reports []*report
	before := heap()
	for range 10 {
		_, r := h.begin("good", `{"do":"big-log","n":10000000}`)
		require.Equal(t, job.Success, h.outcome(r).Kind)
		require.Len(t, r.logged, 1)
		require.True(t, r.logged[0].Truncated)
		require.True(t, strings.HasPrefix(r.logged[0].Message, "lll"))
		reports = append(reports, r)
	}
	require.Less(t, heap(), before+20<<20)
	runtime.KeepAlive(reports)
}
