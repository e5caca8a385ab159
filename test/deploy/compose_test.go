package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composed is deploy/compose.yaml as Compose reads it.
func composed(t *testing.T) *types.Project {
	t.Helper()
	directory, err := filepath.Abs(filepath.Join(root, "deploy"))
	require.NoError(t, err)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  directory,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(directory, "compose.yaml")}},
		Environment: types.Mapping{},
	}, func(o *loader.Options) {
		// secrets.sh makes its env_file.
		o.SkipResolveEnvironment = true
		o.SetProjectName("holdfast", true)
	})
	require.NoError(t, err)
	return project
}

var orchestrators = []string{"orchestrator-1", "orchestrator-2"}

// docker-compose 1.29 refuses the key name, and newer ones warn about version.
func TestOldComposesReadTheFile(t *testing.T) {
	var top map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/compose.yaml")), &top))
	for key := range top {
		require.Regexp(t, `^(services|volumes|secrets|x-.+)$`, key)
	}
}

func TestComposeHasAllThatBelongsTogether(t *testing.T) {
	project := composed(t)
	require.ElementsMatch(t, append(orchestrators, "postgres", "jaeger", "prometheus", "grafana"), project.ServiceNames())
	for _, name := range []string{"postgres", "prometheus", "grafana"} {
		require.Contains(t, project.Volumes, name)
		var kept bool
		for _, volume := range project.Services[name].Volumes {
			kept = kept || volume.Type == types.VolumeTypeVolume && volume.Source == name
		}
		require.True(t, kept, "%s keeps its data", name)
	}
	for name, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				_, err := os.Stat(volume.Source)
				require.NoError(t, err, name)
			}
		}
	}
}

func TestPortsArePublishedOnTheLoopbackOnly(t *testing.T) {
	published := map[string]string{}
	for name, service := range composed(t).Services {
		for _, port := range service.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
			require.Empty(t, published[port.Published], "%s is published twice", port.Published)
			published[port.Published] = name
		}
		require.NotEqual(t, "host", service.NetworkMode, name)
	}
	require.Equal(t, map[string]string{
		"8080": "orchestrator-1", "8081": "orchestrator-2", "16686": "jaeger", "4317": "jaeger", "9090": "prometheus", "3000": "grafana",
	}, published)
}

// pinned matches an image whose tag or digest names one version.
var pinned = regexp.MustCompile(`:v?\d+\.\d+[\w.-]*$|:\w+-\d{8}-slim$|@sha256:[0-9a-f]{64}$`)

func TestImagesArePinned(t *testing.T) {
	for name, service := range composed(t).Services {
		if service.Build == nil {
			require.Regexp(t, pinned, service.Image, name)
		}
	}
	require.NotRegexp(t, pinned, "postgres:latest")
	require.NotRegexp(t, pinned, "postgres:17")
}

func TestEveryServiceSaysWhetherItIsHealthy(t *testing.T) {
	for name, service := range composed(t).Services {
		require.NotNil(t, service.HealthCheck, name)
		require.Equal(t, "CMD", service.HealthCheck.Test[0], name)
		require.NotNil(t, service.HealthCheck.StartPeriod, name)
		require.Equal(t, "unless-stopped", service.Restart, name)
	}
}

func TestServicesStartInOrder(t *testing.T) {
	services := composed(t).Services
	for _, name := range orchestrators {
		require.Equal(t, types.ServiceConditionHealthy, services[name].DependsOn["postgres"].Condition, name)
		// Jobs do not depend on the collector of their traces.
		require.NotContains(t, services[name].DependsOn, "jaeger")
	}
	require.Equal(t, types.ServiceConditionHealthy, services["grafana"].DependsOn["prometheus"].Condition)
}

func TestOrchestratorsHaveTimeToDrain(t *testing.T) {
	var defaults struct {
		Worker struct {
			DrainTimeout time.Duration `yaml:"drain_timeout"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "config.yaml")), &defaults))
	require.NotZero(t, defaults.Worker.DrainTimeout)
	for _, name := range orchestrators {
		require.Greater(t, time.Duration(*composed(t).Services[name].StopGracePeriod), defaults.Worker.DrainTimeout, name)
	}
}

func TestOrchestratorsAreConfined(t *testing.T) {
	for _, name := range orchestrators {
		service := composed(t).Services[name]
		require.True(t, service.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, service.CapDrop, name)
		require.Contains(t, service.SecurityOpt, "no-new-privileges:true", name)
		require.True(t, *service.Init, name)
		require.False(t, service.Privileged, name)
		require.Equal(t, name, service.Hostname, "operators know workers by it")
	}
}

func TestOrchestratorsSendTheirTracesToJaeger(t *testing.T) {
	for _, name := range orchestrators {
		environment := composed(t).Services[name].Environment
		require.Equal(t, "http://jaeger:4317", *environment["OTEL_EXPORTER_OTLP_ENDPOINT"])
		require.Equal(t, "grpc", *environment["OTEL_EXPORTER_OTLP_PROTOCOL"])
		require.Equal(t, "ip=127.0.0.1,host.ip=127.0.0.1", *environment["OTEL_RESOURCE_ATTRIBUTES"], "one clock")
		require.Equal(t, "true", *environment["HOLDFAST_TRACING__PLUGINS"])
		require.Equal(t, "http://127.0.0.1:16686/trace/{trace_id}", *environment["HOLDFAST_TRACING__TRACE_URL_TEMPLATE"])
	}
}

func TestNoSecretIsInTheFile(t *testing.T) {
	secretive := regexp.MustCompile(`(?i)password|token|secret|_url$`)
	project := composed(t)
	for name, service := range project.Services {
		for variable := range service.Environment {
			require.True(t, !secretive.MatchString(variable) || strings.HasSuffix(variable, "_FILE"), "%s of %s", variable, name)
		}
	}
	ignored := strings.Fields(read(t, ".gitignore"))
	require.Contains(t, ignored, "/deploy/secrets/")
	made := makeSecrets(t)
	for name, secret := range project.Secrets {
		require.Equal(t, name, filepath.Base(secret.File))
		require.FileExists(t, filepath.Join(made, name))
		require.Equal(t, "deploy/secrets", within(t, filepath.Dir(secret.File)))
	}
	for _, name := range orchestrators {
		for _, file := range project.Services[name].EnvFiles {
			require.Equal(t, "deploy/secrets/orchestrator.env", within(t, file.Path))
		}
		require.Len(t, project.Services[name].EnvFiles, 1)
	}
}

// within is a path relative to the root of the repository.
func within(t *testing.T, path string) string {
	t.Helper()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	relative, err := filepath.Rel(top, path)
	require.NoError(t, err)
	return relative
}

func TestPrometheusWatchesTheOrchestrators(t *testing.T) {
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string `yaml:"job_name"`
			Authorization struct {
				CredentialsFile string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "deploy/prometheus/prometheus.yaml")))
	require.NoError(t, decoder.Decode(&config))
	require.Len(t, config.ScrapeConfigs, 1)
	scrape := config.ScrapeConfigs[0]
	require.Equal(t, "holdfast", scrape.JobName)
	require.Equal(t, []string{"orchestrator-1:8080", "orchestrator-2:8080"}, scrape.StaticConfigs[0].Targets)
	for _, file := range config.RuleFiles {
		require.FileExists(t, filepath.Join(root, "deploy/prometheus", file))
	}
	service := composed(t).Services["prometheus"]
	require.Len(t, service.Secrets, 1)
	require.Equal(t, scrape.Authorization.CredentialsFile, "/run/secrets/"+service.Secrets[0].Source)
	require.Contains(t, service.Command, "--config.file=/etc/prometheus/prometheus.yaml")
}
