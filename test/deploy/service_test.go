package deploy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// unit is deploy/systemd/holdfast.service: values by section and key.
func unit(t *testing.T) map[string]map[string]string {
	t.Helper()
	sections, section := map[string]map[string]string{}, ""
	for line := range strings.Lines(read(t, "deploy/systemd/holdfast.service")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
			sections[section] = map[string]string{}
		default:
			key, value, found := strings.Cut(line, "=")
			require.True(t, found, line)
			require.NotContains(t, sections[section], key, "twice")
			sections[section][key] = value
		}
	}
	return sections
}

func TestTheServiceCanGivePluginsCgroups(t *testing.T) {
	service := unit(t)["Service"]
	require.Equal(t, "yes", service["Delegate"])
	require.Equal(t, "orchestrator", service["DelegateSubgroup"], "docs/explanation/isolation.md: it need not move")
	require.Equal(t, "continue", service["OOMPolicy"], "one handler out of memory does not end all")
	for _, key := range []string{"ProtectControlGroups", "RestrictNamespaces", "MemoryDenyWriteExecute"} {
		require.NotContains(t, service, key)
	}
}

func TestTheServiceDrainsBeforeItIsKilled(t *testing.T) {
	service := unit(t)["Service"]
	require.Equal(t, "mixed", service["KillMode"], "handlers are not told to stop behind the orchestrator's back")
	var defaults struct{ Worker struct{ Drain time.Duration } }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "config.yaml")), &defaults))
	patience, err := time.ParseDuration(service["TimeoutStopSec"])
	require.NoError(t, err)
	require.Greater(t, patience, defaults.Worker.Drain)
	require.Equal(t, "always", service["Restart"])
	require.Equal(t, "2", service["RestartPreventExitStatus"], "docs/reference/configuration.md: the configuration is wrong")
}

func TestTheServiceIsHardened(t *testing.T) {
	service := unit(t)["Service"]
	require.NotEmpty(t, service["User"])
	require.NotEqual(t, "root", service["User"])
	require.Empty(t, service["CapabilityBoundingSet"])
	require.Contains(t, service, "CapabilityBoundingSet")
	require.Equal(t, "strict", service["ProtectSystem"])
	require.Equal(t, "0077", service["UMask"])
	for _, key := range []string{
		"NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectClock", "ProtectHostname", "ProtectKernelLogs",
		"ProtectKernelModules", "ProtectKernelTunables", "LockPersonality", "RestrictRealtime", "RestrictSUIDSGID",
	} {
		require.Equal(t, "yes", service[key], key)
	}
	for key, value := range service {
		require.False(t, key == "Environment" && strings.Contains(value, "PASSWORD"), "secrets are in a file of root's")
	}
}
