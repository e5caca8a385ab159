package ui_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// healthy answers everything that the overview asks for, without any problem.
func healthy() map[string]any {
	return map[string]any{
		"GET /metrics": v1.Metrics{
			At:           noon,
			StatusCounts: map[job.State]int64{job.Queued: 12, job.Running: 3, job.Created: 5, job.Succeeded: 1234567, job.Dead: 7},
			Recent:       v1.Recent{SinceMinutes: 15, Submitted: 40, Succeeded: 1030, Dead: 1, FailedAttempts: 4},
			Queues: []v1.Queue{
				{JobType: "SEND_EMAIL", Queued: 12, OldestQueuedSeconds: 0.25, Scheduled: 2, Held: 3, Running: 3, Dead: 7, Served: true},
			},
		},
		"GET /debug/series": v1.Series{
			At: noon, Window: v1.QuarterHour, SlotSeconds: 10,
			Slots: []v1.SeriesSlot{
				{
					Start: noon.Add(-20 * time.Second), Submitted: 1200, Succeeded: 1030, Retried: 3, Dead: 1, Open: 15,
					Wait: &v1.SeriesLatency{Attempts: 1034, P50: 0.004, P95: 1.5}, Run: &v1.SeriesLatency{Attempts: 1034, P50: 2, P95: 75},
				},
				{Start: noon.Add(-10 * time.Second), Partial: true, Open: 15},
			},
			JobTypes: []v1.SeriesType{{JobType: "SEND_EMAIL", Ended: []int64{1034, 0}, Failed: []int64{4, 0}}},
		},
		"GET /debug/config":  v1.Configuration{Settings: []v1.Setting{{Key: "worker.lease", Value: "30s"}, {Key: "security.password", Value: "xxxxx"}}},
		"GET /debug/replica": v1.Replica{},
		"GET /debug/workers": v1.WorkerList{Workers: []v1.Worker{{WorkerID: "one-1", Condition: job.WorkerAlive, LastHeartbeat: noon}}},
		"GET /debug/plugins": v1.PluginList{Plugins: []v1.Plugin{{Name: "builtin", State: job.PluginUp}}},
	}
}

func TestTheOverviewShowsStatesAndTypes(t *testing.T) {
	requireGolden(t, "overview", newPages(healthy()).get("/ui/"))
}

func TestProblemsComeFirst(t *testing.T) {
	answers := healthy()
	metrics := answers["GET /metrics"].(v1.Metrics)
	metrics.OldestSnapshotSeconds = 7200
	metrics.Queues = []v1.Queue{{JobType: "<img onerror=x>", Queued: 1}, {JobType: "PAUSED", Served: true, Paused: true}}
	answers["GET /metrics"] = metrics
	answers["GET /debug/workers"] = v1.WorkerList{Workers: []v1.Worker{
		{WorkerID: "gone", Condition: job.WorkerSilent, LastHeartbeat: noon.Add(-3 * time.Minute)},
		{WorkerID: "long gone", Condition: job.WorkerSilent, LastHeartbeat: noon.Add(-300 * time.Hour)},
	}}
	answers["GET /debug/plugins"] = v1.PluginList{Plugins: []v1.Plugin{
		{Name: "mailer", State: job.PluginBroken, LastError: "exit status 1"},
		{Name: "shop", State: job.PluginUp, LastSwap: &v1.PluginSwap{To: v1.PluginVersion{Version: "2.0.0"}, Result: job.SwapRolledBack, Reason: "5 of 9 attempts failed"}},
	}}
	w := newPages(answers).get("/ui/")
	requireGolden(t, "overview-problems", w)
	require.NotContains(t, w.Body.String(), "<img")
}

func TestAnEmptyOverviewSaysHowToBegin(t *testing.T) {
	answers := healthy()
	answers["GET /metrics"] = v1.Metrics{At: noon}
	requireGolden(t, "overview-empty", newPages(answers).get("/ui/"))
}

func TestALivePartHasATag(t *testing.T) {
	p := newPages(healthy())
	part := p.get("/ui/", "Hf-Fragment: live-overview")
	require.Equal(t, 200, part.Code)
	require.NotContains(t, part.Body.String(), "<main")
	require.Contains(t, part.Body.String(), "SEND_EMAIL")
	again := p.get("/ui/", "Hf-Fragment: live-overview", "If-None-Match: "+part.Header().Get("Etag"))
	require.Equal(t, 304, again.Code)
	require.Zero(t, again.Body.Len())
	for _, other := range []string{"content", "layout", "live-nothing", "state"} {
		require.Equal(t, 404, p.get("/ui/", "Hf-Fragment: "+other).Code, other)
	}
}

// A part that was rendered for one tab is shown to another only if that would be the same.
func TestALivePartIsRenderedAnewForWhatDiffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := healthy()
		p := newPagesWithin(0, nil, answers)
		poll := func(path string, headers ...string) string {
			return p.get(path, append(headers, "Hf-Fragment: live-overview")...).Body.String()
		}
		first := poll("/ui/")
		require.Contains(t, first, "1,234,567")
		require.Equal(t, first, poll("/ui/"))
		require.NotEqual(t, first, poll("/ui/?minutes=60"))
		require.NotEqual(t, first, poll("/ui/", "Cookie: hf_preferences=zone=Asia/Kolkata"))
		require.NotEqual(t, first, p.get("/ui/").Body.String(), "the whole page")

		metrics := answers["GET /metrics"].(v1.Metrics)
		metrics.StatusCounts = map[job.State]int64{job.Succeeded: 1234568}
		answers["GET /metrics"] = metrics
		time.Sleep(time.Minute) // it is read again
		require.Contains(t, poll("/ui/"), "1,234,568")
	})
}

func TestTheOverviewAppearsAlthoughTheDatabaseHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		close(hung)
		answers := map[string]any{}
		for call, answer := range healthy() {
			answers[call] = func(*http.Request) any {
				<-hung
				return answer
			}
		}
		p := newPagesWithin(0, nil, answers)
		require.NotContains(t, p.get("/ui/").Body.String(), `id="stale"`)

		time.Sleep(time.Minute)
		hung = make(chan struct{})
		asked := time.Now()
		w := p.get("/ui/")
		require.Equal(t, 200, w.Code)
		require.LessOrEqual(t, time.Since(asked), 200*time.Millisecond, "all of its readings together")
		require.Contains(t, w.Body.String(), "Figures are from ")
		time.Sleep(2 * time.Second)
		w = p.get("/ui/")
		require.Contains(t, w.Body.String(), "The database has not answered for ")
		require.Contains(t, w.Body.String(), `<div class="stale">`)

		asked = time.Now()
		require.Equal(t, 503, newPagesWithin(0, nil, answers).get("/ui/").Code, "without old figures it says so")
		require.LessOrEqual(t, time.Since(asked), 3*time.Second)
		close(hung)
		synctest.Wait()
		time.Sleep(time.Minute)
		require.NotContains(t, p.get("/ui/").Body.String(), `id="stale"`, "and recovers by itself")
	})
}
