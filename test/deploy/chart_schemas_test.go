package deploy

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yannh/kubeconform/pkg/validator"
	"sigs.k8s.io/yaml"
)

// source is a Go module whose files describe kinds of objects. It is downloaded, not
// linked: it describes more than Go types do, such as what is required and which values
// there are.
type source struct {
	module, version, sum string
	files                []string
}

var kubernetes = map[string]source{
	oldestKubernetes: {"k8s.io/kubernetes", "v" + oldestKubernetes, "h1:MrlKXh9uhLIJpyxOeXhcndzRVSvwiV9iJ8NgH8nqPsg=", described},
	newestKubernetes: {"k8s.io/kubernetes", "v" + newestKubernetes, "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=", described},
}

var described = []string{
	"api/openapi-spec/v3/api__v1_openapi.json", "api/openapi-spec/v3/apis__apps__v1_openapi.json",
	"api/openapi-spec/v3/apis__autoscaling__v2_openapi.json", "api/openapi-spec/v3/apis__batch__v1_openapi.json",
	"api/openapi-spec/v3/apis__networking.k8s.io__v1_openapi.json", "api/openapi-spec/v3/apis__policy__v1_openapi.json",
}

var operators = []source{
	{
		"github.com/cloudnative-pg/cloudnative-pg", "v1.28.1", "h1:HdOUWgFhta558uHfXeO/199qCApxaj5yi05x6nWNmgs=",
		[]string{"config/crd/bases/postgresql.cnpg.io_clusters.yaml"},
	},
	{
		"github.com/kedacore/keda/v2", "v2.20.2", "h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA=",
		[]string{"config/crd/bases/keda.sh_scaledobjects.yaml"},
	},
	{
		"github.com/prometheus-operator/prometheus-operator", "v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
		[]string{
			"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
			"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		},
	},
}

// read returns the files of the module, from the module cache or from the module proxy.
func (s source) read(t *testing.T) [][]byte {
	t.Helper()
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", s.module+"@"+s.version)
	download.Dir = t.TempDir()
	answer, err := download.Output()
	require.NoError(t, err, "%s", answer)
	var module struct{ Dir, Sum string }
	require.NoError(t, json.Unmarshal(answer, &module))
	require.Equal(t, s.sum, module.Sum, s.module)
	var all [][]byte
	for _, file := range s.files {
		content, err := os.ReadFile(filepath.Join(module.Dir, file))
		require.NoError(t, err)
		all = append(all, content)
	}
	return all
}

// schemas writes a JSON schema for each kind, and returns where kubeconform finds them.
func schemas(t *testing.T, version string) string {
	t.Helper()
	directory := t.TempDir()
	for i, content := range kubernetes[version].read(t) {
		writeKinds(t, directory, filepath.Base(kubernetes[version].files[i]), content)
	}
	for _, operator := range operators {
		for _, content := range operator.read(t) {
			writeCustomKind(t, directory, content)
		}
	}
	return filepath.Join(directory, "{{.ResourceKind}}{{.KindSuffix}}.json")
}

// writeKinds writes all types of a description of Kubernetes' own API, and a reference for
// each kind among them.
func writeKinds(t *testing.T, directory, file string, content []byte) {
	t.Helper()
	var api struct {
		Components struct{ Schemas map[string]map[string]any }
	}
	require.NoError(t, json.Unmarshal(content, &api))
	for name, schema := range api.Components.Schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) == 1 {
			kind := kinds[0].(map[string]any)
			writeSchema(t, directory, kind["kind"].(string), kind["group"].(string), kind["version"].(string),
				map[string]any{"$ref": file + "#/components/schemas/" + name})
		}
		closeObjects(schema)
	}
	whole, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": api.Components.Schemas}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, file), whole, 0o600))
}

func writeCustomKind(t *testing.T, directory string, content []byte) {
	t.Helper()
	var definition struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &definition))
	for _, version := range definition.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		closeObjects(schema)
		writeSchema(t, directory, definition.Spec.Names.Kind, definition.Spec.Group, version.Name, schema)
	}
}

func writeSchema(t *testing.T, directory, kind, group, version string, schema map[string]any) {
	t.Helper()
	name := kind
	if group != "" {
		first, _, _ := strings.Cut(group, ".")
		name += "-" + first
	}
	content, err := json.Marshal(schema)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, strings.ToLower(name+"-"+version)+".json"), content, 0o600))
}

// closeObjects refuses members that a schema does not describe, as the API server does for
// `kubectl apply --validate=strict`.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		_, members := node["properties"].(map[string]any)
		_, others := node["additionalProperties"]
		if node["type"] == "object" && members && !others && node["x-kubernetes-preserve-unknown-fields"] != true {
			node["additionalProperties"] = false
		}
		for _, inner := range node {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range node {
			closeObjects(inner)
		}
	}
}

func conforming(t *testing.T, version string) func(name, text string) []validator.Result {
	t.Helper()
	v, err := validator.New([]string{schemas(t, version)}, validator.Opts{Strict: true, KubernetesVersion: version})
	require.NoError(t, err)
	return func(name, text string) []validator.Result {
		return v.Validate(name, io.NopCloser(strings.NewReader(text)))
	}
}

func TestEveryObjectConformsToItsSchema(t *testing.T) {
	for version := range kubernetes {
		t.Run(version, func(t *testing.T) {
			check, seen := conforming(t, version), 0
			valid := func(name, text string) {
				for _, result := range check(name, text) {
					require.Equal(t, validator.Valid, result.Status, "%s: %v %v\n%s", name, result.Err, result.ValidationErrors, text)
					seen++
				}
			}
			for _, file := range examples(t) {
				if version == oldestKubernetes && strings.Contains(read(t, strings.TrimPrefix(file, root)), "volume: true") {
					continue // it has no image volumes yet
				}
				for _, o := range objects(t, valuesOf(t, file)) {
					valid(filepath.Base(file)+": "+o.Kind+" "+o.Metadata.Name, o.text)
				}
			}
			valid("cluster.yaml", read(t, "deploy/helm/cloudnativepg/cluster.yaml"))
			require.Greater(t, seen, 40)
		})
	}
}

func TestSchemasRefuseWhatIsMisspelledMissingOrOfAnotherType(t *testing.T) {
	check := conforming(t, newestKubernetes)
	for name, text := range map[string]string{
		"a misspelled member":            "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: []}",
		"an inner one":                   "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, resource: {}}]}",
		"a missing member":               "apiVersion: policy/v1\nkind: PodDisruptionBudget\nspec: {selector: {matchExpressions: [{key: a}]}}",
		"a number for a text":            "apiVersion: v1\nkind: ConfigMap\ndata: {a: 1}",
		"a misspelled one of KEDA":       "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nspec: {triggers: [], scaleTargetRef: {nam: a}}",
		"a missing one of CloudNativePG": "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {instances: 3, postgresql: {synchronous: {method: any}}}",
		"a value that is none of those":  "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {instances: 3, postgresql: {synchronous: {method: most, number: 1}}}",
	} {
		results := check(name, text)
		require.Len(t, results, 1, name)
		require.Equal(t, validator.Invalid, results[0].Status, "%s: %v", name, results[0].Err)
	}
}
