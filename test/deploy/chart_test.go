package deploy

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

const chartPath = "deploy/helm/holdfast"

// The Kubernetes that the chart is rendered for, and against whose schemas it is checked.
const oldestKubernetes, newestKubernetes = "1.30.14", "1.37.2"

// examples are the files of values in deploy/helm/examples.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/helm/examples/*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 6)
	return files
}

func loadedChart(t *testing.T) *chart.Chart {
	t.Helper()
	// It would tell of each link.
	slog.SetLogLoggerLevel(slog.LevelWarn)
	loaded, err := loader.Load(filepath.Join(root, chartPath))
	require.NoError(t, err)
	return loaded
}

// rendering is what `helm template` makes of the chart.
func rendering(t *testing.T, values common.Values, kubernetes string) (map[string]string, error) {
	t.Helper()
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion(kubernetes)
	require.NoError(t, err)
	capabilities.KubeVersion = *version
	loaded := loadedChart(t)
	release := common.ReleaseOptions{Name: "holdfast", Namespace: "jobs", IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(loaded, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	// Strict, so that a template cannot ask for a value that does not exist.
	return engine.Engine{Strict: true}.Render(loaded, all)
}

func valuesOf(t *testing.T, file string) common.Values {
	t.Helper()
	values, err := common.ReadValuesFile(file)
	require.NoError(t, err)
	return values
}

// object is an object of Kubernetes, as YAML and as its kind and name.
type object struct {
	APIVersion, Kind string
	Metadata         struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	text string
}

// objects are what the chart makes of some values.
func objects(t *testing.T, values common.Values) []object {
	t.Helper()
	files, err := rendering(t, values, newestKubernetes)
	require.NoError(t, err)
	var all []object
	for name, content := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, text := range strings.Split("\n"+content, "\n---\n") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			var o object
			require.NoError(t, yaml.Unmarshal([]byte(text), &o), "%s: %s", name, text)
			o.text = text
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b object) int {
		return strings.Compare(a.Kind+" "+a.Metadata.Name, b.Kind+" "+b.Metadata.Name)
	})
	return all
}

// named reads one of the objects into a type of Kubernetes, which must know all its members.
func named[T any](t *testing.T, all []object, kind, name string) T {
	t.Helper()
	var found T
	at := slices.IndexFunc(all, func(o object) bool { return o.Kind == kind && o.Metadata.Name == name })
	require.GreaterOrEqual(t, at, 0, "%s %s", kind, name)
	require.NoError(t, yaml.UnmarshalStrict([]byte(all[at].text), &found), all[at].text)
	return found
}

// has says whether there is such an object.
func has(all []object, kind, name string) bool {
	return slices.ContainsFunc(all, func(o object) bool { return o.Kind == kind && o.Metadata.Name == name })
}

func TestHelmLintFindsNothing(t *testing.T) {
	for _, file := range examples(t) {
		linted := lint.RunAll(filepath.Join(root, chartPath), valuesOf(t, file), "jobs")
		require.NotEmpty(t, linted.Messages, "it says at least that there is no icon")
		for _, message := range linted.Messages {
			require.Equal(t, support.InfoSev, message.Severity, "%s: %s", file, message)
		}
	}
}

// The order in which Helm renders templates and maps must not show.
func TestTheSameValuesMakeTheSameObjects(t *testing.T) {
	for _, file := range examples(t) {
		values := valuesOf(t, file)
		require.Equal(t, objects(t, values), objects(t, values))
	}
}

func TestEachTemplateMakesObjectsOfOneKind(t *testing.T) {
	values := valuesOf(t, filepath.Join(root, "deploy/helm/examples/production.yaml"))
	values["workers"].(map[string]any)["printing"].(map[string]any)["autoscaling"] = map[string]any{
		"enabled": true, "jobTypes": []any{"PRINT"},
	}
	files, err := rendering(t, values, newestKubernetes)
	require.NoError(t, err)
	for name, content := range files {
		kinds := map[string]bool{}
		for line := range strings.Lines(content) {
			if kind, ok := strings.CutPrefix(line, "kind: "); ok {
				kinds[kind] = true
			}
		}
		if strings.HasSuffix(name, ".yaml") {
			require.Len(t, kinds, 1, name)
		}
	}
}

func TestAnUnusedWorkerIsRemovedWithNull(t *testing.T) {
	all := objects(t, valuesOf(t, filepath.Join(root, "deploy/helm/examples/handlers.yaml")))
	require.False(t, has(all, "Deployment", "holdfast-worker-builtin"))
	require.False(t, has(all, "PodDisruptionBudget", "holdfast-worker-builtin"))
	require.True(t, has(all, "Deployment", "holdfast-worker-printing"))
}

func TestThePackagedChartContainsTheAlertsAndTheDashboard(t *testing.T) {
	packaged, err := chartutil.Save(loadedChart(t), t.TempDir())
	require.NoError(t, err)
	loaded, err := loader.Load(packaged)
	require.NoError(t, err)
	for file, source := range map[string]string{
		"files/alerts.yaml":    "deploy/prometheus/alerts.yaml",
		"files/dashboard.json": "deploy/grafana/dashboards/holdfast.json",
	} {
		info, err := os.Lstat(filepath.Join(root, chartPath, file))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s is a link, so that there is no second copy", file)
		at := slices.IndexFunc(loaded.Files, func(f *common.File) bool { return f.Name == file })
		require.GreaterOrEqual(t, at, 0, file)
		require.Equal(t, read(t, source), string(loaded.Files[at].Data))
	}
}
