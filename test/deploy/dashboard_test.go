package deploy

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// dashboard is the part of Grafana's format that these tests check.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ H, W, X, Y int }
	Datasource struct{ Type, UID string }
	Targets    []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ UID string }
	}
}

func holdfastDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/dashboards/holdfast.json")), &d))
	require.NotEmpty(t, d.Panels)
	return d
}

// variables are those of the dashboard and of Grafana.
var (
	variables = strings.NewReplacer("$__rate_interval", "5m", `=~"$job_type"`, `=~".*"`, `=~"$instance"`, `=~".*"`)
	asLegend  = regexp.MustCompile(`{{(\w+)}}`)
	asValues  = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

func TestPanelsUseDocumentedMetrics(t *testing.T) {
	known, d := documented(t), holdfastDashboard(t)
	for _, p := range d.Panels {
		if p.Type == "row" {
			require.Empty(t, p.Targets, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		for _, target := range p.Targets {
			require.Equal(t, "${datasource}", target.Datasource.UID, p.Title)
			query := variables.Replace(target.Expr)
			require.NotContains(t, query, "$", "%s has a variable that is not known", p.Title)
			shown := known.check(t, query)
			for _, label := range asLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				require.Contains(t, shown, label[1], "the legend of %s", p.Title)
				aggregated := strings.Contains(query, "by (")
				require.True(t, !aggregated || regexp.MustCompile(`by \([^)]*\b`+label[1]+`\b`).MatchString(query),
					"%s names %s in its legend, and sums over it", p.Title, label[1])
			}
		}
	}
}

func TestTheDashboardsVariablesAreThere(t *testing.T) {
	known, names := documented(t), []string{}
	for _, variable := range holdfastDashboard(t).Templating.List {
		names = append(names, variable.Name)
		if variable.Type == "query" {
			parts := asValues.FindStringSubmatch(variable.Definition)
			require.NotNil(t, parts, variable.Definition)
			require.Contains(t, known.check(t, parts[1]), parts[2])
		}
	}
	require.Equal(t, []string{"datasource", "job_type", "instance"}, names)
}

func TestPanelsDoNotCoverEachOther(t *testing.T) {
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range holdfastDashboard(t).Panels {
		require.Empty(t, ids[p.ID], "%s has the id of another", p.Title)
		ids[p.ID] = p.Title
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

func TestTheDashboardShowsWhatOperatorsLookFor(t *testing.T) {
	var asked []string
	for _, p := range holdfastDashboard(t).Panels {
		for _, target := range p.Targets {
			asked = append(asked, target.Expr)
		}
	}
	all := strings.Join(asked, "\n")
	for _, name := range []string{
		"up", "holdfast_database_up", "holdfast_attempts_total", "holdfast_claim_latency_seconds_bucket",
		"holdfast_attempt_duration_seconds_bucket", "holdfast_jobs", "holdfast_queue_jobs", "holdfast_queue_oldest_age_seconds",
		"holdfast_queue_served", "holdfast_plugin_up", "holdfast_plugin_broken", "holdfast_plugin_restarts_total",
		"holdfast_plugin_crashes_total", "holdfast_plugin_slots_free", "holdfast_plugin_jobs_running", "holdfast_leases_held",
		"holdfast_lease_losses_total", "holdfast_jobs_reaped_total", "holdfast_batch_duration_seconds_bucket",
		"holdfast_database_errors_total", "holdfast_pool_connections", "holdfast_pool_wait_seconds_total",
		"holdfast_snapshot_age_seconds", "holdfast_http_request_duration_seconds_bucket",
		"holdfast_spans_sent_total", "holdfast_spans_dropped_total",
	} {
		require.Regexp(t, `\b`+name+`\b`, all)
	}
}

func TestGrafanaIsProvisionedWithWhatTheDashboardUses(t *testing.T) {
	var sources struct {
		Datasources []struct{ Name, UID, Type, URL string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/grafana/provisioning/datasources/datasources.yaml")), &sources))
	urls := map[string]string{}
	for _, source := range sources.Datasources {
		urls[source.Type] = source.URL
	}
	require.Equal(t, map[string]string{"prometheus": "http://prometheus:9090", "jaeger": "http://jaeger:16686"}, urls)

	var dashboards struct {
		Providers []struct{ Options struct{ Path string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/grafana/provisioning/dashboards/dashboards.yaml")), &dashboards))
	require.Len(t, dashboards.Providers, 1)
	grafana := composed(t).Services["grafana"]
	var mounted []string
	for _, volume := range grafana.Volumes {
		mounted = append(mounted, volume.Target)
	}
	require.Contains(t, mounted, dashboards.Providers[0].Options.Path)
	require.Contains(t, mounted, "/etc/grafana/provisioning")
	home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	require.Equal(t, dashboards.Providers[0].Options.Path+"/holdfast.json", *home)
}
