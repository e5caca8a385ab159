package deploy

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
)

func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "deploy/prometheus/alerts.yaml")), false, model.UTF8Validation,
		parser.NewParser(parser.Options{}))
	require.Empty(t, errs)
	found := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			require.NotEmpty(t, rule.Alert)
			found[rule.Alert] = rule
		}
	}
	return found
}

// occasion is a history in which an alert fires, or does not.
type occasion struct {
	series []string
	// says is a part of the summary; empty if the alert does not fire.
	says string
}

// occasions are, for each alert, histories in which it fires and similar ones in which it
// does not. A series has one sample a minute.
var occasions = map[string]map[string]occasion{
	"HoldfastDown": {
		"cannot be scraped for a minute": {[]string{`up{job="holdfast", instance="a:8080"} 1 0 0`, `up{job="holdfast", instance="b:8080"} 1 1 1`}, "cannot scrape a:8080"},
		"was away for a moment":          {[]string{`up{job="holdfast", instance="a:8080"} 1 1 0`}, ""},
		"another job is down":            {[]string{`up{job="node", instance="a:9100"} 0 0 0`}, ""},
	},
	"HoldfastNowhere": {
		"no orchestrator is known": {[]string{`up{job="node", instance="a:9100"} 1x9`}, "knows no orchestrator"},
		"all are down":             {[]string{`up{job="holdfast", instance="a:8080"} 0x9`}, ""},
		"not for long":             {[]string{`up{job="holdfast", instance="a:8080"} 1 _x8`}, ""},
	},
	"HoldfastDatabaseDown": {
		"one does not reach it": {[]string{`holdfast_database_up{instance="a:8080"} 1 0 0`, `holdfast_database_up{instance="b:8080"} 1 1 1`}, "not answered a:8080"},
		"a moment":              {[]string{`holdfast_database_up{instance="a:8080"} 1 1 0`}, ""},
	},
	"HoldfastQueueOld": {
		"older and older": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 0+60x12`, `holdfast_queue_waiting{job_type="MAIL", reason="claim"} 9x12`,
		}, "Jobs of type MAIL have been due for 12m"},
		"not for long": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 0+60x9`, `holdfast_queue_waiting{job_type="MAIL", reason="claim"} 9x9`,
		}, ""},
		"nobody serves it": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 0+60x12`, `holdfast_queue_waiting{job_type="MAIL", reason="unserved"} 9x12`,
			`holdfast_queue_waiting{job_type="MAIL", reason="claim"} 0x12`,
		}, ""},
		"it is paused": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 0+60x12`, `holdfast_queue_waiting{job_type="MAIL", reason="paused"} 9x12`,
			`holdfast_queue_waiting{job_type="MAIL", reason="claim"} 0x12`,
		}, ""},
		"only a limit keeps them": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 0+60x12`, `holdfast_queue_waiting{job_type="MAIL", reason="concurrency_key"} 9x12`,
			`holdfast_queue_waiting{job_type="MAIL", reason="claim"} 0x12`,
		}, ""},
		"is worked off in time": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="MAIL"} 200x12`, `holdfast_queue_waiting{job_type="MAIL", reason="claim"} 9x12`,
		}, ""},
	},
	"HoldfastAdmissionStuck": {
		"nobody admits": {[]string{
			`holdfast_admission_inbox 0 7x5`, `holdfast_batch_size_count{operation="admit", instance="a:8080"} 90x6`,
		}, "No orchestrator admits jobs"},
		"nobody ever has": {[]string{`holdfast_admission_inbox 0 7x5`}, "No orchestrator admits jobs"},
		"much is admitted": {[]string{
			`holdfast_admission_inbox 0 7x5`, `holdfast_batch_size_count{operation="admit", instance="a:8080"} 90x6`,
			`holdfast_batch_size_count{operation="admit", instance="b:8080"} 90+60x6`,
		}, ""},
		"nothing is to do": {[]string{
			`holdfast_admission_inbox 0x6`, `holdfast_batch_size_count{operation="admit", instance="a:8080"} 90x6`,
		}, ""},
		"not for long": {[]string{
			`holdfast_admission_inbox 0x4 7`, `holdfast_batch_size_count{operation="admit", instance="a:8080"} 90x5`,
		}, ""},
	},
	"HoldfastTypeUnserved": {
		"jobs wait for a handler": {[]string{
			`holdfast_queue_jobs{job_type="MAIL", state="queued"} 5x3`, `holdfast_queue_served{job_type="MAIL"} 0x3`,
		}, "5 jobs of type MAIL wait"},
		"one orchestrator has heard of a worker that serves it": {[]string{
			`holdfast_queue_jobs{job_type="MAIL", state="queued"} 5x3`,
			`holdfast_queue_served{job_type="MAIL", instance="a"} 0x3`, `holdfast_queue_served{job_type="MAIL", instance="b"} 1x3`,
		}, ""},
		"nothing waits": {[]string{
			`holdfast_queue_jobs{job_type="MAIL", state="queued"} 0x3`, `holdfast_queue_jobs{job_type="MAIL", state="held"} 9x3`,
			`holdfast_queue_served{job_type="MAIL"} 0x3`,
		}, ""},
		"another type is served": {[]string{
			`holdfast_queue_jobs{job_type="MAIL", state="queued"} 5x3`, `holdfast_queue_served{job_type="MAIL"} 1x3`,
			`holdfast_queue_served{job_type="PRINT"} 0x3`,
		}, ""},
	},
	"HoldfastDeadLettersGrow": {
		"one more":      {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 2x13 3x2`}, "type MAIL failed for good"},
		"the first":     {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 0x13 1x2`}, "type MAIL failed for good"},
		"as many":       {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 2x15`}, ""},
		"sent again":    {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 2x10 0x5`}, ""},
		"others gather": {[]string{`holdfast_queue_jobs{job_type="MAIL", state="queued"} 0+5x15`}, ""},
		"grew before":   {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 0 1 2x20`}, ""},
		"webhooks":      {[]string{`holdfast_queue_jobs{job_type="WEBHOOK", state="dead"} 2x13 3x2`}, ""},
	},
	"HoldfastWebhooksDead": {
		"one more": {[]string{`holdfast_queue_jobs{job_type="WEBHOOK", state="dead"} 2x13 3x2`}, "Deliveries of webhooks failed for good"},
		"as many":  {[]string{`holdfast_queue_jobs{job_type="WEBHOOK", state="dead"} 2x15`}, ""},
		"others":   {[]string{`holdfast_queue_jobs{job_type="MAIL", state="dead"} 2x13 3x2`}, ""},
	},
	"HoldfastLeasesLost": {
		"one":      {[]string{`holdfast_lease_losses_total{instance="a:8080", reason="unproven"} 0x5 1x3`}, "a:8080 lost leases (unproven)"},
		"long ago": {[]string{`holdfast_lease_losses_total{instance="a:8080", reason="unproven"} 0 3x20`}, ""},
		"restart":  {[]string{`holdfast_lease_losses_total{instance="a:8080", reason="settle"} 3x5 0x5`}, ""},
	},
	"HoldfastPluginBroken": {
		"keeps failing": {[]string{`holdfast_plugin_broken{plugin="mail", instance="a:8080"} 0 1 1`}, "The plugin mail on a:8080 keeps failing"},
		"came up again": {[]string{`holdfast_plugin_broken{plugin="mail", instance="a:8080"} 1 1 0`}, ""},
	},
	"HoldfastSpansDropped": {
		"the collector is gone": {[]string{`holdfast_spans_dropped_total{instance="a:8080", reason="not_sent"} 0x5 512x3`}, "Spans of a:8080 were dropped (not_sent)"},
		"long ago":              {[]string{`holdfast_spans_dropped_total{instance="a:8080", reason="queue_full"} 0 512x20`}, ""},
		"all were taken":        {[]string{`holdfast_spans_dropped_total{instance="a:8080", reason="not_sent"} 0x8`, `holdfast_spans_sent_total{instance="a:8080"} 0+512x8`}, ""},
		"restart":               {[]string{`holdfast_spans_dropped_total{instance="a:8080", reason="not_sent"} 512x5 0x5`}, ""},
	},
	"HoldfastSnapshotOld": {
		"eleven minutes and on": {[]string{`holdfast_snapshot_age_seconds 0+60x16`}, "for 16m"},
		"a long report":         {[]string{`holdfast_snapshot_age_seconds 0+60x14 0`}, ""},
		"ten minutes":           {[]string{`holdfast_snapshot_age_seconds 600x10`}, ""},
	},
	"HoldfastSnapshotVeryOld": {
		"more than an hour":        {[]string{`holdfast_snapshot_age_seconds 3601+60x6`, `holdfast_snapshot_age_transactions 1x6`}, "End the transaction"},
		"ten million transactions": {[]string{`holdfast_snapshot_age_seconds 0x6`, `holdfast_snapshot_age_transactions 1e7x6`}, "replication slot"},
		"half an hour":             {[]string{`holdfast_snapshot_age_seconds 1800+60x6`, `holdfast_snapshot_age_transactions 9e6x6`}, ""},
	},
}

func TestAlertsFireOnTheirOccasionsAndOnNoOther(t *testing.T) {
	all := alerts(t)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(occasions)), "every alert has occasions")
	for name, rule := range all {
		fires := 0
		for title, occasion := range occasions[name] {
			t.Run(name+"/"+title, func(t *testing.T) {
				h := scrapedHistory(t, occasion.series...)
				firing := h.firing(t, rule.Expr, time.Duration(rule.For))
				if occasion.says == "" {
					require.Empty(t, firing)
					return
				}
				fires++
				require.Len(t, firing, 1)
				require.Contains(t, expanded(t, rule.Annotations["summary"], firing[0], h.until), occasion.says)
			})
		}
		require.NotZero(t, fires, "%s never fires", name)
		require.Greater(t, len(occasions[name]), fires, "%s always fires", name)
	}
}

// expanded is a text of an alert as readers see it. It fails the test if the alert
// lacks a label.
func expanded(t *testing.T, text string, firing promql.Sample, at time.Time) string {
	t.Helper()
	for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
		require.NotEmpty(t, firing.Metric.Get(label[1]), "the alert has no label %s", label[1])
	}
	result, err := template.NewTemplateExpander(t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+text, "alert",
		template.AlertTemplateData(firing.Metric.Map(), nil, "", firing), model.TimeFromUnixNano(at.UnixNano()), nil, &url.URL{}, nil).Expand()
	require.NoError(t, err)
	return result
}

func TestAlertsUseDocumentedMetrics(t *testing.T) {
	known := documented(t)
	for _, rule := range alerts(t) {
		known.check(t, rule.Expr)
	}
}

// An alert that says nothing about what to do is noise.
func TestAlertsSayWhatToDo(t *testing.T) {
	page := read(t, "docs/how-to/deploy.md")
	for name, rule := range alerts(t) {
		require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], name)
		require.Regexp(t, `^\S.+\. .+\.$`, rule.Annotations["summary"], "%s: it must say what is wrong and what to do", name)
		anchor, found := strings.CutPrefix(rule.Annotations["runbook_url"],
			"https://github.com/holdfast-jobs/holdfast/blob/main/docs/how-to/deploy.md#")
		require.True(t, found, name)
		require.Equal(t, strings.ToLower(name), anchor)
		require.Contains(t, page, "\n### "+name+"\n", "docs/how-to/deploy.md explains it")
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (Holdfast\w+)$`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, alerts(t), heading[1])
	}
}
