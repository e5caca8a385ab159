package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// leaves are the values by their paths. What is written in one line, or is a list, is one
// value.
func leaves(node *yaml.Node, path string, found map[string]*yaml.Node) {
	if node.Kind != yaml.MappingNode || node.Style == yaml.FlowStyle {
		found[path] = node
		return
	}
	for i := 0; i < len(node.Content); i += 2 {
		inner := node.Content[i].Value
		if path != "" {
			inner = path + "." + inner
		}
		leaves(node.Content[i+1], inner, found)
	}
}

func TestTheChartsReadmeListsItsValues(t *testing.T) {
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(read(t, chartPath+"/values.yaml")), &document))
	values := map[string]*yaml.Node{}
	leaves(document.Content[0], "", values)
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (\\S.*) \\|$").FindAllStringSubmatch(read(t, chartPath+"/README.md"), -1) {
		path, shown := row[1], row[2]
		require.Contains(t, values, path, "values.yaml does not have it")
		require.NotContains(t, listed, path, "twice")
		listed[path] = true
		var want, got any
		require.NoError(t, values[path].Decode(&want))
		require.NoError(t, yaml.Unmarshal([]byte(shown), &got), "%s: %s", path, shown)
		require.Equal(t, want, got, path)
	}
	for path := range values {
		require.Contains(t, listed, path, "README.md does not list it")
	}
}

// changed are the values of an example, changed by some YAML.
func changed(t *testing.T, change string) common.Values {
	t.Helper()
	values, err := common.ReadValues([]byte(change))
	require.NoError(t, err)
	return values
}

func TestTheSchemaRefusesValuesThatCannotWork(t *testing.T) {
	for title, c := range map[string]struct{ values, says string }{
		"a misspelled key":            {"replicaCount: 3", "replicaCount"},
		"an inner one":                {"api: {replica: 3}", "replica"},
		"one of a worker":             {"workers: {a: {replica: 3, plugins: [{path: /a}]}}", "replica"},
		"a password among values":     {"config: {security: {password: secret}}", "/config/security"},
		"the database among values":   {"config: {database: {url: 'postgres://a:b@c/d'}}", "/config/database"},
		"plugins for the API":         {"config: {plugins: []}", "/config"},
		"another port":                {"config: {server: {address: ':80'}}", "/config/server/address"},
		"no Secret":                   {"operatorSecret: {name: ''}", "/operatorSecret/name"},
		"plugins that are not there":  {"workers: {a: {plugins: [{path: bin/a}]}}", "/workers/a/plugins/0/path"},
		"a name that makes no label":  {"workers: {A_b: {plugins: [{path: /a}]}}", "A_b"},
		"a role that does not exist":  {"api: {roles: [server]}", "/api/roles/0"},
		"a time without a unit":       {"migrations: {wait: '5'}", "/migrations/wait"},
		"fewer than no pods":          {"api: {replicas: -1}", "/api/replicas"},
		"autoscaling without a queue": {"workers: {a: {plugins: [{path: /a}], autoscaling: {enabled: true}}}", "/workers/a/autoscaling"},
		"memory without a limit":      {"api: {resources: {limits: null}}", "/api/resources"},
		"a budget of none":            {"podDisruptionBudget: {maxUnavailable: 0}", "/podDisruptionBudget/maxUnavailable"},
	} {
		_, err := rendering(t, changed(t, c.values), newestKubernetes)
		require.ErrorContains(t, err, c.says, title)
	}
	_, err := rendering(t, nil, newestKubernetes)
	require.NoError(t, err, "the defaults are valid")
}

// Helm's own merge takes 0 and false for nothing.
func TestAWorkerOverridesItsDefaultsKeyByKey(t *testing.T) {
	all := objects(t, changed(t, `
workerDefaults: {replicas: 5, autoscaling: {enabled: true, jobTypes: [A]}}
workers:
  scaled: {plugins: [{path: /a}]}
  stopped: {plugins: [{path: /a}], replicas: 0, autoscaling: {enabled: false}, resources: {limits: {memory: 7Gi}}}`))
	scaled := named[apps.Deployment](t, all, "Deployment", "holdfast-worker-scaled")
	require.Nil(t, scaled.Spec.Replicas, "KEDA decides")
	require.True(t, has(all, "ScaledObject", "holdfast-worker-scaled"))
	stopped := named[apps.Deployment](t, all, "Deployment", "holdfast-worker-stopped")
	require.Zero(t, *stopped.Spec.Replicas)
	require.False(t, has(all, "ScaledObject", "holdfast-worker-stopped"))
	resources := stopped.Spec.Template.Spec.Containers[0].Resources
	require.Equal(t, "7Gi", resources.Limits.Memory().String())
	require.Equal(t, "512Mi", resources.Requests.Memory().String(), "the default")
}

func TestAChangeOfTheConfigurationReplacesThePodsThatReadIt(t *testing.T) {
	sums := func(values string) map[string]string {
		found := map[string]string{}
		for name, pod := range pods(t, objects(t, changed(t, values))) {
			found[name] = pod.Annotations["checksum/config"]
		}
		return found
	}
	const api, worker = "holdfast-api", "holdfast-worker-builtin"
	before, plugins, config := sums("{}"), sums("workers: {builtin: {plugins: [{path: /other}]}}"), sums("config: {log: {level: debug}}")
	require.Equal(t, before[api], plugins[api])
	require.NotEqual(t, before[worker], plugins[worker])
	require.NotEqual(t, before[api], config[api])
	require.NotEqual(t, before[worker], config[worker])
}

// The program reads each config.yaml of the chart. It ends since there is no database, and
// not earlier.
func TestTheProgramAcceptsTheConfigurationOfTheChart(t *testing.T) {
	directory := t.TempDir()
	program := filepath.Join(directory, "orchestrator")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-C", root, "-o", program, "./cmd/orchestrator").CombinedOutput()
	require.NoError(t, err, string(output))
	status := func(config string, environment ...string) (int, string) {
		file := filepath.Join(directory, "config.yaml")
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		run := exec.CommandContext(t.Context(), program, "migrate", "status")
		run.Dir, run.Env = directory, append(os.Environ(), "HOLDFAST_DATABASE__URL=postgres://nobody@127.0.0.1:1/none")
		run.Env = append(run.Env, environment...)
		output, err := run.CombinedOutput()
		require.Error(t, err)
		return run.ProcessState.ExitCode(), string(output)
	}
	for _, file := range examples(t) {
		all := objects(t, valuesOf(t, file))
		files := named[core.ConfigMap](t, all, "ConfigMap", "holdfast-config").Data
		used := map[string]bool{}
		for name, pod := range pods(t, all) {
			var environment []string
			for _, variable := range pod.Spec.Containers[0].Env {
				if variable.Value != "" && strings.HasPrefix(variable.Name, "HOLDFAST_") {
					environment = append(environment, variable.Name+"="+variable.Value)
				}
				if variable.ValueFrom != nil && !strings.HasPrefix(variable.Name, "HOLDFAST_") {
					environment = append(environment, variable.Name+"=a-secret-that-is-long-enough-for-"+variable.Name)
				}
			}
			if name == "holdfast-migrate" {
				code, says := status("", environment...)
				require.Equal(t, 1, code, "%s of %s: %s", name, file, says)
				require.Contains(t, says, "127.0.0.1:1", name)
			}
			for _, volume := range pod.Spec.Volumes {
				if volume.ConfigMap == nil {
					continue
				}
				item := volume.ConfigMap.Items[0]
				used[item.Key] = true
				require.Equal(t, "config.yaml", item.Path)
				code, says := status(files[item.Key], environment...)
				require.Equal(t, 1, code, "%s of %s: %s\n%s", name, file, says, files[item.Key])
				require.Contains(t, says, "127.0.0.1:1", name)
			}
		}
		require.Len(t, used, len(files), "every file has a reader")
	}
	code, says := status("plugin: []")
	require.Equal(t, 2, code, says)
}
