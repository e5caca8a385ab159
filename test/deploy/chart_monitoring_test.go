package deploy

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func example(t *testing.T, name string) []object {
	t.Helper()
	return objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples", name)))
}

func TestTheChartHasTheAlerts(t *testing.T) {
	var rule struct{ Spec struct{ Groups any } }
	for _, o := range example(t, "production.yaml") {
		if o.Kind == "PrometheusRule" {
			require.NoError(t, yaml.Unmarshal([]byte(o.text), &rule))
			require.Equal(t, "kube-prometheus-stack", o.Metadata.Labels["release"], "Prometheus chooses by it")
		}
	}
	content, err := yaml.Marshal(map[string]any{"groups": rule.Spec.Groups})
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	require.Empty(t, errs)
	found := map[string]string{}
	for _, group := range groups.Groups {
		for _, alert := range group.Rules {
			found[alert.Alert] = alert.Expr
			require.Equal(t, alerts(t)[alert.Alert].Annotations, alert.Annotations)
		}
	}
	require.Len(t, found, len(alerts(t)))
	for name, expr := range found {
		require.Equal(t, alerts(t)[name].Expr, expr)
	}
}

func TestTheChartHasTheDashboard(t *testing.T) {
	made := named[core.ConfigMap](t, example(t, "production.yaml"), "ConfigMap", "holdfast-dashboard")
	require.Equal(t, "1", made.Labels["grafana_dashboard"], "Grafana's sidecar chooses by it")
	require.JSONEq(t, read(t, "deploy/grafana/dashboards/holdfast.json"), made.Data["holdfast.json"])
	require.Less(t, len(made.Data["holdfast.json"]), 900_000, "a ConfigMap has room for 1 MiB")
}

// The alerts ask for job="holdfast", in deploy/prometheus as in a cluster.
func TestPrometheusFindsEveryPodUnderTheNameOfTheAlerts(t *testing.T) {
	all := example(t, "production.yaml")
	var monitor struct {
		Spec struct {
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct {
				Port, Path    string
				Authorization struct{ Credentials struct{ Name, Key string } }
				Relabelings   []struct{ TargetLabel, Replacement string }
			}
		}
	}
	for _, o := range all {
		if o.Kind == "ServiceMonitor" {
			require.NoError(t, yaml.Unmarshal([]byte(o.text), &monitor))
		}
	}
	require.Len(t, monitor.Spec.Endpoints, 1)
	endpoint := monitor.Spec.Endpoints[0]
	require.Equal(t, "job", endpoint.Relabelings[0].TargetLabel)
	require.Contains(t, read(t, "deploy/prometheus/prometheus.yaml"), "job_name: "+endpoint.Relabelings[0].Replacement+"\n")
	require.Equal(t, "holdfast-tokens", endpoint.Authorization.Credentials.Name)

	service := named[core.Service](t, all, "Service", "holdfast-metrics")
	require.Equal(t, endpoint.Port, service.Spec.Ports[0].Name)
	require.Subset(t, service.Labels, monitor.Spec.Selector.MatchLabels)
	require.NotSubset(t, named[core.Service](t, all, "Service", "holdfast-api").Labels, monitor.Spec.Selector.MatchLabels, "no pod is read twice")
	for name, pod := range pods(t, all) {
		if name != "holdfast-migrate" {
			require.Subset(t, pod.Labels, service.Spec.Selector, name)
			require.Equal(t, service.Spec.Ports[0].TargetPort.StrVal, pod.Spec.Containers[0].Ports[0].Name, name)
		}
	}
	require.Len(t, pods(t, all), 4)
}

// scaled is the part of a ScaledObject that these tests check.
type scaled struct {
	Spec struct {
		ScaleTargetRef                   struct{ Name string }
		MinReplicaCount, MaxReplicaCount int
		Triggers                         []struct {
			Type, MetricType string
			Metadata         map[string]string
		}
	}
}

func scaledObject(t *testing.T, name string) scaled {
	t.Helper()
	var found scaled
	for _, o := range example(t, "keda.yaml") {
		if o.Kind == "ScaledObject" && o.Metadata.Name == name {
			require.NoError(t, yaml.Unmarshal([]byte(o.text), &found))
		}
	}
	require.Len(t, found.Spec.Triggers, 1, name)
	return found
}

func TestWorkersScaleByTheAgeOfWhatWaits(t *testing.T) {
	builtin, video := scaledObject(t, "holdfast-worker-builtin"), scaledObject(t, "holdfast-worker-video")
	require.Equal(t, 1, builtin.Spec.MinReplicaCount)
	require.Equal(t, 0, video.Spec.MinReplicaCount)
	require.Equal(t, "holdfast-worker-video", video.Spec.ScaleTargetRef.Name)
	require.Equal(t, "120", video.Spec.Triggers[0].Metadata["threshold"])
	require.Equal(t, "Value", video.Spec.Triggers[0].MetricType)

	query := video.Spec.Triggers[0].Metadata["query"]
	documented(t).check(t, query)
	require.Regexp(t, regexp.QuoteMeta(`"video\\.encode|video\\.thumbnail"`), query)
	for title, c := range map[string]struct {
		series []string
		want   []float64
	}{
		"the oldest of its types counts, seen by any orchestrator": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="video.encode", instance="a"} 90`, `holdfast_queue_oldest_age_seconds{job_type="video.encode", instance="b"} 100`,
			`holdfast_queue_oldest_age_seconds{job_type="video.thumbnail", instance="a"} 40`, `holdfast_queue_oldest_age_seconds{job_type="MAIL", instance="a"} 900`,
			`holdfast_queue_waiting{job_type="video.encode", reason="claim", instance="a"} 3`, `holdfast_queue_waiting{job_type="video.thumbnail", reason="claim", instance="a"} 1`,
			`holdfast_queue_waiting{job_type="MAIL", reason="claim", instance="a"} 1`,
		}, []float64{100}},
		"nobody serves them yet": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="video.encode"} 7`, `holdfast_queue_waiting{job_type="video.encode", reason="unserved"} 1`,
		}, []float64{7}},
		"a limit keeps them": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="video.encode"} 500`, `holdfast_queue_waiting{job_type="video.encode", reason="rate"} 9`,
			`holdfast_queue_waiting{job_type="video.encode", reason="claim"} 0`,
		}, []float64{0}},
		"a similar name": {[]string{
			`holdfast_queue_oldest_age_seconds{job_type="video-encode"} 500`, `holdfast_queue_waiting{job_type="video-encode", reason="claim"} 9`,
		}, []float64{0}},
		"nothing waits":             {[]string{`holdfast_queue_oldest_age_seconds{job_type="video.encode"} 0`}, []float64{0}},
		"Prometheus has no figures": {[]string{`up{job="holdfast"} 0`}, nil},
	} {
		t.Run(title, func(t *testing.T) {
			h := scrapedHistory(t, c.series...)
			var got []float64
			for _, sample := range h.evaluate(t, query, h.until) {
				got = append(got, sample.F)
			}
			require.Equal(t, c.want, got)
		})
	}
	require.Equal(t, "false", video.Spec.Triggers[0].Metadata["ignoreNullValues"], "without figures, nothing changes")
}
