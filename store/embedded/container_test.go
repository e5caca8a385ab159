package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// scripts/test-containers.sh provides an engine and an image.
func TestDockerStandsInForMissingBinaries(t *testing.T) {
	image := os.Getenv("HOLDFAST_TEST_POSTGRES_IMAGE")
	if image == "" || os.Geteuid() != 0 {
		t.Skip("needs an image that is there, and root to remove what a container wrote")
	}
	docker, err := exec.LookPath("docker")
	require.NoError(t, err)
	hidePostgres(t)
	path := t.TempDir()
	require.NoError(t, os.Symlink(docker, filepath.Join(path, "docker")))
	t.Setenv("PATH", path)
	usual := usualImage
	usualImage = image
	t.Cleanup(func() { usualImage = usual })

	dir := filepath.Join(tempDir(t), "home")
	server := begin(t, Config{DataDir: dir})
	run(t, server, "create table t as select 42 as n")
	require.Equal(t, "on", query(t, server, "select current_setting('fsync')"))
	guest := begin(t, Config{DataDir: dir})
	require.Equal(t, server.URL(), guest.URL())
	end(t, server)

	usualImage = "not/used:again"
	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"))
}

func TestAContainersDataNeedsDocker(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := tempDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "container"), 0o700))
	_, err := Start(t.Context(), Config{DataDir: dir})
	require.ErrorContains(t, err, "start Docker")
}
