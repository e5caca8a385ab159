package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// makeSecrets runs deploy/secrets.sh for a directory of the test's own.
func makeSecrets(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "secrets")
	runSecrets(t, directory)
	return directory
}

func runSecrets(t *testing.T, directory string) {
	t.Helper()
	output, err := exec.Command(filepath.Join(root, "deploy/secrets.sh"), directory).CombinedOutput()
	require.NoError(t, err, string(output))
	require.Empty(t, output, "secrets are not printed")
}

func secretsIn(t *testing.T, directory string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	found := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = string(content)
	}
	return found
}

func TestSecretsAreMadeOnce(t *testing.T) {
	directory := makeSecrets(t)
	first := secretsIn(t, directory)
	require.Len(t, first, 5, "no draft is left")
	for _, name := range []string{"postgres_password", "grafana_password", "prometheus_token"} {
		require.Regexp(t, `^[0-9a-f]{32,}$`, first[name], name)
	}
	require.Regexp(t, `^admin:[0-9a-f]{32}\n$`, first["operator"])

	runSecrets(t, directory)
	require.Equal(t, first, secretsIn(t, directory))
	require.NotEqual(t, first["operator"], secretsIn(t, makeSecrets(t))["operator"])

	require.NoError(t, os.Remove(filepath.Join(directory, "operator")))
	runSecrets(t, directory)
	again := secretsIn(t, directory)
	require.Equal(t, first["postgres_password"], again["postgres_password"])
	require.NotEqual(t, first["orchestrator.env"], again["orchestrator.env"], "it follows the new password")
}

func TestSecretsAgreeWithEachOther(t *testing.T) {
	made := secretsIn(t, makeSecrets(t))
	sum := sha256.Sum256([]byte(made["prometheus_token"]))
	environment := made["orchestrator.env"]
	require.Contains(t, environment, "TOKEN_SHA256="+hex.EncodeToString(sum[:])+"\n")
	require.Contains(t, environment, "://holdfast:"+made["postgres_password"]+"@postgres:5432/holdfast")
	password := strings.TrimSpace(strings.TrimPrefix(made["operator"], "admin:"))
	require.Contains(t, environment, "HOLDFAST_SECURITY__PASSWORD="+password+"\n")
	require.NotContains(t, environment, made["prometheus_token"])
	require.NotContains(t, environment, made["grafana_password"])
}

// Containers read some of the files as users that this machine does not know.
func TestOtherUsersCannotReadSecrets(t *testing.T) {
	directory := makeSecrets(t)
	info, err := os.Stat(directory)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	for name, mode := range map[string]fs.FileMode{
		"operator": 0o600, "orchestrator.env": 0o600,
		"postgres_password": 0o444, "grafana_password": 0o444, "prometheus_token": 0o444,
	} {
		info, err := os.Stat(filepath.Join(directory, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

func TestSecretsThatAreMadeAtTheSameTimeAgree(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "secrets")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { runSecrets(t, directory) })
	}
	all.Wait()
	made := secretsIn(t, directory)
	require.Contains(t, made["orchestrator.env"], ":"+made["postgres_password"]+"@")
	require.Contains(t, made["orchestrator.env"], "PASSWORD="+strings.TrimSpace(strings.TrimPrefix(made["operator"], "admin:")))
}
