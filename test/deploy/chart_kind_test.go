package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// No test runs test/kind/run.sh, which needs Docker. What it installs is checked like the
// examples.
func TestTheScriptForKindUsesWhatIsThere(t *testing.T) {
	script := read(t, "test/kind/run.sh")
	paths := regexp.MustCompile(`\b(?:deploy|test)/[\w./-]+`).FindAllString(script, -1)
	require.Greater(t, len(paths), 4)
	for _, path := range paths {
		require.FileExists(t, fileOf(path), path)
	}
	require.Contains(t, script, "cnpg-"+operators[0].version[1:]+".yaml", "the version whose schema the tests use")

	values := valuesOf(t, filepath.Join(root, "deploy/helm/examples/cloudnativepg.yaml"))
	maps.Copy(values, valuesOf(t, filepath.Join(root, "test/kind/values.yaml")))
	all := objects(t, values)
	require.Equal(t, "holdfast:v0.0.0-kind", containerOf(t, all, "holdfast-api").Image)
	require.Regexp(t, regexp.MustCompile(`--tag holdfast:v0\.0\.0-kind`), script)
}

// fileOf is a file of the repository; of the chart, which is a directory, its Chart.yaml.
func fileOf(path string) string {
	if info, err := os.Stat(filepath.Join(root, path)); err == nil && info.IsDir() {
		return filepath.Join(root, path, "Chart.yaml")
	}
	return filepath.Join(root, path)
}
