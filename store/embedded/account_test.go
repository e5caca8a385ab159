package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this is about root")
	}
}

// setRefuge gives the test its own refuge.
func setRefuge(t *testing.T) {
	t.Helper()
	old := refuge
	refuge = filepath.Join(filepath.Dir(tempDir(t)), "refuge")
	t.Cleanup(func() { refuge = old })
}

// privateDir is a directory that only root can reach.
func privateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(tempDir(t), "private")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

func TestRootFindsAPlaceThatTheServerCanReach(t *testing.T) {
	asRoot(t)
	setRefuge(t)
	private := privateDir(t)
	dir := filepath.Join(private, "data", "postgres")

	log := &logged{}
	server := begin(t, Config{DataDir: dir, Log: log.logger()})
	run(t, server, "create table t as select 42 as n")
	end(t, server)
	require.Contains(t, log.text(), "place="+refuge)
	target, err := os.Readlink(dir)
	require.NoError(t, err)
	require.Equal(t, refuge, filepath.Dir(target))

	server = begin(t, Config{DataDir: dir})
	require.Equal(t, "42", query(t, server, "select n::text from t"), "the link leads back to the data")
}

func TestRootDoesNotMoveWhatIsThere(t *testing.T) {
	asRoot(t)
	setRefuge(t)
	private := privateDir(t)
	kept := filepath.Join(private, "kept")
	require.NoError(t, os.WriteFile(kept, []byte("mine"), 0o600))

	_, err := Start(t.Context(), Config{DataDir: private})
	require.ErrorContains(t, err, "cannot reach "+private)
	require.FileExists(t, kept)
	require.NoDirExists(t, refuge)
}

func TestRootRunsAClusterAsItsOwner(t *testing.T) {
	asRoot(t)
	dir := tempDir(t)
	const uid = 65534 // nobody, as a rule
	require.NoError(t, os.Chown(dir, uid, uid))
	server := begin(t, Config{DataDir: dir})
	require.Equal(t, "1", query(t, server, "select '1'"))
	owner, _, err := ownerOf(filepath.Join(dir, "data"))
	require.NoError(t, err)
	require.Equal(t, uid, owner)
}

// The same tests for an ordinary user, who cannot run PostgreSQL as another user or
// inspect other users' processes.
func TestAllOfThisAsAnOrdinaryUser(t *testing.T) {
	asRoot(t)
	work := filepath.Dir(tempDir(t))
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	binary := filepath.Join(work, "embedded.test") // go test builds into a private directory
	require.NoError(t, os.WriteFile(binary, program, 0o755))

	cmd := exec.CommandContext(t.Context(), binary, "-test.count=1", "-test.failfast")
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TMPDIR=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Setpgid: true}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
