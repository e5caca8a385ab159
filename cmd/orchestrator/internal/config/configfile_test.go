package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/stretchr/testify/require"
)

const shipped = "../../../../config.yaml"

// offSetting is a setting that is commented out: prose has a blank after "#".
var offSetting = regexp.MustCompile(`(?m)^#( +(?:- )?[A-Za-z_0-9]+:)`)

// allSettings is the shipped file with every setting on.
func allSettings(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(shipped)
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line == "#limits:\n" || line == "#schedules:\n" || strings.HasPrefix(line, "#  ") && !strings.Contains(line, "--") && offSetting.MatchString(line) {
			line = line[1:]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

func TestConfigFileDocumentsEveryKey(t *testing.T) {
	tree, err := yaml.Parser().Unmarshal([]byte(allSettings(t)))
	require.NoError(t, err)
	var documented []string
	var walk func(node any, above key)
	walk = func(node any, above key) {
		if len(above) > 0 {
			documented = append(documented, above.String())
		}
		switch node := node.(type) {
		case map[string]any:
			for name, inner := range node {
				if slices.Equal(above, key{"plugins", "0", "env"}) || len(above) == 3 && above[0] == "plugins" && above[2] == "env" {
					name = "NAME"
				}
				if len(above) == 2 && above[0] == "limits" {
					name = "SEND_EMAIL"
				}
				if len(above) > 0 && above[0] == "schedules" {
					switch len(above) {
					case 1:
						name = "types" // as the model of names has it
					case 3:
						name, inner = "NAME", nil // of a submission
					}
				}
				walk(inner, append(slices.Clone(above), name))
			}
		case []any:
			for _, inner := range node {
				if _, branches := inner.(map[string]any); branches {
					walk(inner, append(slices.Clone(above), "0"))
				}
			}
		}
	}
	walk(tree, nil)
	slices.Sort(documented)
	known := knownKeys(reflect.TypeFor[Config](), nil, key{"jobs", "types", "SEND_EMAIL"})
	for i := range known {
		known[i] = strings.Replace(known[i], "plugins.SEND_EMAIL", "plugins.0", 1)
	}
	slices.Sort(known)
	require.Equal(t, known, slices.Compact(documented))
}

func TestConfigFileHasTheDefaults(t *testing.T) {
	cfg, err := Load(Sources{File: shipped})
	require.NoError(t, err)
	require.Len(t, cfg.Plugins, 1)
	absolute, err := filepath.Abs("../../../../bin/handlers")
	require.NoError(t, err)
	require.Equal(t, Plugin{
		Name: "builtin", Path: absolute, Args: []string{}, Env: map[string]string{}, Processes: new(1), Isolated: new(16),
		StartTimeout: new(10 * time.Second), Watch: new(true), Canary: Canary{Share: new(defaultCanaryShare), Period: new(defaultCanaryPeriod), MaxSlowdown: new(float64(defaultMaxSlowdown))},
	}, cfg.Plugins[0])

	want := Defaults()
	want.Source, want.HasPlugins, want.Plugins = cfg.Source, cfg.HasPlugins, cfg.Plugins
	require.NoError(t, want.finish(nil))
	require.Equal(t, want, cfg)
}

func TestConfigFileIsValidWithEverySettingUncommented(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(allSettings(t)), 0o600))
	cfg, err := Load(Sources{File: path, Environ: []string{"MONITORING_TOKEN=secret"}})
	require.NoError(t, err)
	require.Len(t, cfg.Plugins, 2)
	require.Equal(t, Size(512<<20), *cfg.Plugins[0].Limits.Memory)
	require.Len(t, cfg.Security.Tokens, 2)
	require.Equal(t, Secret("secret"), cfg.Security.Tokens[1].Token)
	require.Equal(t, 10, *cfg.Jobs.Types["SEND_EMAIL"].MaxAttempts)
	limits, err := cfg.Limits.List()
	require.NoError(t, err)
	require.Len(t, limits, 4)
	require.True(t, cfg.HasLimits)
	schedules, err := cfg.Schedules.List()
	require.NoError(t, err)
	require.Len(t, schedules, 3)
	require.True(t, cfg.HasSchedules)
}

func TestTheDocumentationHasEveryKeyOfTracing(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/configuration.md")
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(tracing\\.[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	require.ElementsMatch(t, knownKeys(reflect.TypeFor[Tracing](), key{"tracing"}, nil), documented)
}
