package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// platform is how the names of this machine's archives end.
var platform = runtime.GOOS + "_" + runtime.GOARCH

// release serves files as a release and as the latest release.
func release(t *testing.T, version string, files http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/latest/download/", http.StripPrefix("/latest/download/", files))
	mux.Handle("/download/"+version+"/", http.StripPrefix("/download/"+version+"/", files))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// files is a release whose programs print its version.
func files(t *testing.T, version string) map[string][]byte {
	t.Helper()
	name := "holdfast_" + strings.TrimPrefix(version, "v") + "_" + platform
	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	members := tar.NewWriter(packed)
	for _, program := range []string{"orchestrator", "handlers"} {
		script := []byte("#!/bin/sh\necho " + program + " " + version + "\n")
		require.NoError(t, members.WriteHeader(&tar.Header{Name: name + "/" + program, Mode: 0o755, Size: int64(len(script))}))
		_, err := members.Write(script)
		require.NoError(t, err)
	}
	require.NoError(t, members.Close())
	require.NoError(t, packed.Close())
	sum := sha256.Sum256(archive.Bytes())
	return map[string][]byte{
		name + ".tar.gz": archive.Bytes(),
		"SHA256SUMS": fmt.Appendf(nil, "%064d  holdfast_%s_plan9_mips.tar.gz\n%s  %s.tar.gz\n",
			0, strings.TrimPrefix(version, "v"), hex.EncodeToString(sum[:]), name),
	}
}

func serving(all map[string][]byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := all[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	})
}

// installed runs install.sh and returns what it prints.
func installed(t *testing.T, environment ...string) (string, error) {
	t.Helper()
	script := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "scripts/install.sh"))
	script.Env = append(os.Environ(), environment...)
	output, err := script.CombinedOutput()
	return string(output), err
}

func TestInstallReplacesTheProgramsWithThoseOfARelease(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bin")
	for _, version := range []string{"v1.2.3", "v1.3.0-rc.1"} {
		at := release(t, version, serving(files(t, version)))
		for _, wanted := range []string{"", "HOLDFAST_VERSION=" + version} {
			output, err := installed(t, "HOLDFAST_RELEASES="+at, "HOLDFAST_DIR="+dir, wanted)
			require.NoError(t, err, output)
			require.Contains(t, output, "installed orchestrator and handlers of holdfast_"+version[1:]+"_"+platform+" in "+dir)
			require.Contains(t, output, "add "+dir+" to your PATH")
			for _, program := range []string{"orchestrator", "handlers"} {
				said, err := exec.CommandContext(t.Context(), filepath.Join(dir, program)).Output()
				require.NoError(t, err)
				require.Equal(t, program+" "+version+"\n", string(said))
			}
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

func TestInstallRefusesWhatItCannotInstall(t *testing.T) {
	const version = "v1.2.3"
	good := release(t, version, serving(files(t, version)))
	archive := "holdfast_1.2.3_" + platform + ".tar.gz"
	forged := files(t, version)
	forged[archive] = append(forged[archive], 0)
	broken := files(t, version)
	delete(broken, archive)
	other := files(t, version)
	other["SHA256SUMS"] = bytes.ReplaceAll(other["SHA256SUMS"], []byte(platform), []byte("plan9_arm"))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for title, c := range map[string]struct {
		environment []string
		says        string
	}{
		"another checksum":       {[]string{"HOLDFAST_RELEASES=" + release(t, version, serving(forged))}, "nothing was installed"},
		"no archive":             {[]string{"HOLDFAST_RELEASES=" + release(t, version, serving(broken))}, archive},
		"no such platform":       {[]string{"HOLDFAST_RELEASES=" + release(t, version, serving(other))}, "names no archive for " + runtime.GOOS + "/" + runtime.GOARCH},
		"no such release":        {[]string{"HOLDFAST_RELEASES=" + good, "HOLDFAST_VERSION=v9.9.9"}, "cannot download " + good + "/download/v9.9.9/SHA256SUMS"},
		"no version":             {[]string{"HOLDFAST_RELEASES=" + good, "HOLDFAST_VERSION=../x"}, "HOLDFAST_VERSION=../x is not a version"},
		"another system":         {[]string{"HOLDFAST_RELEASES=" + good, machine(t, "FreeBSD", "x86_64")}, "no release for FreeBSD, only for Linux and macOS"},
		"another processor":      {[]string{"HOLDFAST_RELEASES=" + good, machine(t, "Linux", "riscv64")}, "no release for riscv64, only for amd64 and arm64"},
		"a file as a directory":  {[]string{"HOLDFAST_RELEASES=" + good, "HOLDFAST_DIR=" + file + "/bin"}, "set HOLDFAST_DIR"},
		"a server that is away":  {[]string{"HOLDFAST_RELEASES=http://127.0.0.1:1"}, "cannot download http://127.0.0.1:1/latest/download/SHA256SUMS"},
		"a machine without curl": {[]string{"HOLDFAST_RELEASES=" + good, without(t)}, "install curl or wget first"},
	} {
		t.Run(title, func(t *testing.T) {
			dir := t.TempDir()
			output, err := installed(t, append([]string{"HOLDFAST_DIR=" + dir}, c.environment...)...)
			require.Error(t, err, output)
			require.Contains(t, output, "install.sh: ")
			require.Contains(t, output, c.says)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// machine is a PATH on which uname names another machine.
func machine(t *testing.T, system, processor string) string {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\ncase $1 in -s) echo " + system + " ;; *) echo " + processor + " ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uname"), []byte(script), 0o755))
	return "PATH=" + bin + ":" + os.Getenv("PATH")
}

// without is a PATH that has what install.sh needs, but no curl and no wget.
func without(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"sh", "id", "uname", "mktemp", "rm", "sed", "tar", "gzip", "cut"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	return "PATH=" + bin
}

// make release-snapshot builds a release and sets HOLDFAST_TEST_DIST to it.
func TestTheReleaseThatWasBuiltInstalls(t *testing.T) {
	dist := os.Getenv("HOLDFAST_TEST_DIST")
	if dist == "" {
		t.Skip("make release-snapshot builds a release and runs this")
	}
	sums, err := exec.CommandContext(t.Context(), "sh", "-c", "cd '"+dist+"' && sha256sum --check --strict SHA256SUMS && ls").CombinedOutput()
	require.NoError(t, err, string(sums))
	for _, system := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		for _, kind := range []string{".tar.gz", ".cdx.json"} {
			require.Regexp(t, `holdfast_\S+_`+system+regexp.QuoteMeta(kind)+": OK", string(sums))
		}
	}
	dir := t.TempDir()
	output, err := installed(t, "HOLDFAST_RELEASES="+release(t, "none", http.FileServer(http.Dir(dist))), "HOLDFAST_DIR="+dir)
	require.NoError(t, err, output)
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "orchestrator"), "version").Output()
	require.NoError(t, err)
	require.Regexp(t, `v0\.0\.0-snapshot\.[0-9a-f]+`, string(said))

	archives, err := filepath.Glob(filepath.Join(dist, "holdfast_*_"+platform+".tar.gz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	list, err := exec.CommandContext(t.Context(), "tar", "-tzf", archives[0]).Output()
	require.NoError(t, err)
	for _, member := range []string{"LICENSE", "THIRD_PARTY_LICENSES", "README.md", "CHANGELOG.md", "config.yaml", "docs/README.md", "deploy/systemd/holdfast.service"} {
		require.Contains(t, string(list), "/"+member+"\n")
	}
}
