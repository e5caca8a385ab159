package api_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// plugins is a host with the plugins to show.
type plugins struct {
	status []v1.Plugin
	swap   v1.PluginSwap
	err    error
	// asked is the latest request.
	asked string
}

func (p *plugins) Status() []v1.Plugin { return p.status }

func (p *plugins) Swap(_ context.Context, name string, force bool) (v1.PluginSwap, error) {
	if p.asked = "swap " + name; force {
		p.asked += " by force"
	}
	return p.swap, p.err
}

func (p *plugins) Restart(_ context.Context, name string) (v1.PluginSwap, error) {
	p.asked = "restart " + name
	return p.swap, p.err
}

func (p *plugins) Disable(_ context.Context, name string) error {
	p.asked = "disable " + name
	return p.err
}

func (p *plugins) Enable(_ context.Context, name string, force bool) error {
	if p.asked = "enable " + name; force {
		p.asked += " by force"
	}
	return p.err
}

func somePlugins() *plugins {
	before, now := v1.PluginVersion{Version: "1", SHA256: "aa"}, v1.PluginVersion{Version: "2", SHA256: "bb"}
	begun, ended := birth.UTC(), later.UTC()
	tried := v1.PluginTrial{
		Ended: 9, Failed: 2, ServingEnded: 80, ServingFailed: 1,
		Slowest: &v1.PluginPace{JobType: "MAIL", MedianSeconds: 2, ServingMedianSeconds: 0.1},
	}
	swap := v1.PluginSwap{
		Trigger: job.SwapByFile, From: before, To: now, BegunAt: begun, EndedAt: &ended, Result: job.SwapRolledBack, Reason: "it died",
		Trial: &v1.PluginTrial{Ended: 1},
	}
	return &plugins{swap: swap, status: []v1.Plugin{
		{
			Name: "shop/mail", Path: "/bin/mail", PluginVersion: before, State: job.PluginUp, JobTypes: []string{"MAIL"}, PIDs: []int{7},
			Processes: 2, Running: 3, Free: 17, Isolated: 1, Draining: 4, Restarts: 5, Crashes: 2, LastError: "exit status 3", LastSwap: &swap,
			Limits:    []v1.Enforcement{{Limit: "memory", By: "rlimit", Gap: "each by itself"}},
			Candidate: &v1.PluginCandidate{PluginVersion: now, State: job.CandidateCanary, PIDs: []int{8}, Running: 1, PluginTrial: tried},
		},
		{
			Name: "idle", Path: "/bin/idle", State: job.PluginDisabled, SkipReason: "it is gone",
			JobTypes: []string{}, PIDs: []int{}, Limits: []v1.Enforcement{},
		},
	}}
}

func withPlugins(t *testing.T, p api.Plugins) func(method, path string) (status int, body string) {
	l := newLedger()
	h := documented(t, api.New(api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Workflows: l, AllPlugins: l, Plugins: p, Log: slog.New(slog.DiscardHandler), Version: "test",
		MaxBodyBytes: 4096, RequestTimeout: time.Minute,
	}))
	return func(method, path string) (int, string) {
		answer := send(h, method, path, "")
		return answer.Code, answer.Body.String()
	}
}

func TestPluginsAreShown(t *testing.T) {
	do := withPlugins(t, somePlugins())
	status, body := do("GET", "/debug/plugins")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"plugins":[
		{"version":"1","sha256":"aa","name":"shop/mail","path":"/bin/mail","state":"up","jobTypes":["MAIL"],"pids":[7],"processes":2,
			"running":3,"free":17,"isolated":1,"draining":4,"restarts":5,"crashes":2,"lastError":"exit status 3",
			"limits":[{"limit":"memory","value":0,"by":"rlimit","gap":"each by itself"}],
			"candidate":{"version":"2","sha256":"bb","state":"canary","pids":[8],"running":1,"ended":9,"failed":2,"servingEnded":80,"servingFailed":1,
				"slowest":{"jobType":"MAIL","medianSeconds":2,"servingMedianSeconds":0.1}},
			"lastSwap":{"trigger":"file","from":{"version":"1","sha256":"aa"},"to":{"version":"2","sha256":"bb"},
				"begunAt":"2026-02-20T00:02:03.000456Z","endedAt":"2026-02-20T00:03:03.000456Z","result":"rolled_back","reason":"it died",
				"trial":{"ended":1,"failed":0,"servingEnded":0,"servingFailed":0}}},
		{"version":"","sha256":"","name":"idle","path":"/bin/idle","state":"disabled","jobTypes":[],"pids":[],"processes":0,
			"running":0,"free":0,"isolated":0,"draining":0,"restarts":0,"crashes":0,"skipReason":"it is gone","limits":[]}]}`, body)

	status, body = withPlugins(t, nil)("GET", "/debug/plugins")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"plugins":[]}`, body)
}

func TestPluginsAreOperated(t *testing.T) {
	p := somePlugins()
	do := withPlugins(t, p)
	for path, asked := range map[string]string{
		"shop%2Fmail/swap":            "swap shop/mail",
		"shop%2Fmail/swap?force=true": "swap shop/mail by force",
		"idle/restart":                "restart idle",
		"idle/disable":                "disable idle",
		"idle/enable":                 "enable idle",
		"idle/enable?force=true":      "enable idle by force",
	} {
		status, body := do("POST", "/debug/plugins/"+path)
		require.Equal(t, 200, status, body)
		require.Equal(t, asked, p.asked)
	}
	_, body := do("POST", "/debug/plugins/idle/disable")
	require.Contains(t, body, `"state":"disabled"`)
	status, body := do("POST", "/debug/plugins/idle/swap")
	require.Equal(t, 200, status, "that it failed is an answer")
	require.Contains(t, body, `"result":"rolled_back"`)
}

func TestAMissingOrUnablePluginIsAnswered(t *testing.T) {
	p := somePlugins()
	do := withPlugins(t, p)
	for _, action := range []string{"swap", "restart", "disable", "enable"} {
		status, body := do("POST", "/debug/plugins/nobody/"+action)
		require.Equal(t, 404, status)
		require.Contains(t, body, "this orchestrator has no plugin of that name")
		status, _ = withPlugins(t, nil)("POST", "/debug/plugins/idle/"+action)
		require.Equal(t, 404, status)
	}
	for path, want := range map[string]int{
		"idle/swap?forced=true": 422, "idle/swap?force=perhaps": 422,
		"nobody/swap": 404, "idle/explode": 404,
	} {
		status, _ := do("POST", "/debug/plugins/"+path)
		require.Equal(t, want, status, path)
	}
	require.Empty(t, p.asked)

	p.err = errors.New("open /bin/idle: permission denied")
	status, body := do("POST", "/debug/plugins/idle/enable")
	require.Equal(t, 409, status)
	require.Contains(t, body, "permission denied")
	p.err = context.DeadlineExceeded
	status, _ = do("POST", "/debug/plugins/idle/disable")
	require.Equal(t, 503, status)
	p.swap.EndedAt, p.swap.Result = nil, ""
	status, body = do("POST", "/debug/plugins/shop%2Fmail/swap")
	require.Equal(t, 202, status, body)
	require.NotContains(t, body, "endedAt")
}

func TestASwapThatHasNotBegunIsNotAnsweredWithAnother(t *testing.T) {
	p := somePlugins()
	p.status[0].LastSwap.EndedAt, p.status[0].LastSwap.Result = nil, ""
	p.swap, p.err = v1.PluginSwap{}, context.DeadlineExceeded
	for _, action := range []string{"swap", "restart"} {
		status, body := withPlugins(t, p)("POST", "/debug/plugins/shop%2Fmail/"+action)
		require.Equal(t, 503, status, body)
		require.Contains(t, body, "another swap of the plugin is in progress")
	}
}
