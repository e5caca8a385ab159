package languages

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/sdk"
	"github.com/holdfast-jobs/holdfast/test/sdktest"
)

// python is an interpreter that has what packing and installing the SDK needs.
func python(t *testing.T) string {
	t.Helper()
	path, err := sdktest.FindPython(t.Context())
	if err == nil {
		err = exec.CommandContext(t.Context(), path, "-c", "import setuptools, wheel, pip, ensurepip").Run()
	}
	if err != nil {
		missing(t, "Python with venv, pip, setuptools and wheel: "+err.Error())
	}
	return path
}

// npm skips the test where npm may not download packages.
func npm(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_TEST_LANGUAGES") != "1" {
		t.Skip("npm downloads packages: HOLDFAST_TEST_LANGUAGES=1 allows it")
	}
}

// run runs a command in the directory, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=", "MYPYPATH=")
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", c, said)
	return string(said)
}

// write writes the package into the directory and returns its path.
func write(t *testing.T, dir string, packed sdk.Package, err error) string {
	t.Helper()
	require.NoError(t, err)
	path := filepath.Join(dir, packed.Name)
	require.NoError(t, os.WriteFile(path, packed.Content, 0o600))
	return path
}

func TestPipPacksTheSameWheel(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	for _, part := range []string{"src", "pyproject.toml", "README.md", "LICENSE"} {
		run(t, dir, "cp", "-r", absolute("../../sdk/python/"+part), dir)
	}
	run(t, dir, interpreter, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", "out", ".")
	ours, err := sdk.Wheel()
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(dir, "out", ours.Name))
	require.NoError(t, err)
	got, want := unzip(t, ours.Content), unzip(t, theirs)
	require.Equal(t, below("holdfast/", want), below("holdfast/", got))
	require.Contains(t, got, "holdfast/py.typed")
	const info = "holdfast_jobs-0.1.0.dist-info/"
	require.Equal(t, fields(want[info+"METADATA"]), fields(got[info+"METADATA"]))
	require.Equal(t, fields(want[info+"WHEEL"]), fields(got[info+"WHEEL"]))
}

// fields are the lines of a wheel's metadata that pip acts on.
func fields(metadata string) []string {
	header, _, _ := strings.Cut(metadata, "\n\n")
	lines := regexp.MustCompile(`(?m)^(Name|Version|Summary|Requires-Python|Requires-Dist|Provides-Extra|Tag|Root-Is-Purelib): .*$`).FindAllString(header, -1)
	for i, line := range lines { // tools differ in spaces, quotes, and the order of bounds
		line = strings.NewReplacer(" ", "", "(", "", ")", "", `"`, "'").Replace(line)
		requirement, condition, _ := strings.Cut(line, ";")
		bounds := regexp.MustCompile(`[<>=~!]+[0-9.]+`).FindAllString(requirement, -1)
		slices.Sort(bounds)
		name, _, _ := strings.Cut(requirement, ">")
		name, _, _ = strings.Cut(name, "<")
		lines[i] = name + strings.Join(bounds, ",") + ";" + condition
	}
	slices.Sort(lines)
	return lines
}

func TestTheWheelWorksInAnEmptyEnvironment(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	run(t, dir, interpreter, "-m", "venv", "--system-site-packages", "venv")
	packed, err := sdk.Wheel()
	run(t, dir, "venv/bin/pip", "install", "--no-index", write(t, dir, packed, err))
	tests := absolute("../../sdk/python/tests")
	require.Contains(t, run(t, dir, "venv/bin/python", "-c", "import holdfast; print(holdfast.__file__)"), dir+"/venv/")
	require.Regexp(t, `\nRan \d\d tests in`, run(t, dir, "venv/bin/python", "-m", "unittest", "discover", "-s", tests))
	if _, err := exec.LookPath("mypy"); err != nil {
		missing(t, "mypy")
	}
	run(t, dir, "mypy", "--config-file=", "--strict", "--python-executable", "venv/bin/python", filepath.Join(tests, "typed.py"))
}

func TestNpmPacksTheSameTarball(t *testing.T) {
	npm(t)
	dir := t.TempDir()
	run(t, dir, "npm", "pack", "--silent", absolute("../../sdk/node"))
	ours, err := sdk.Tarball()
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(dir, ours.Name))
	require.NoError(t, err)
	require.Equal(t, untar(t, theirs), untar(t, ours.Content))
}

func TestTheTarballWorksInAnEmptyProject(t *testing.T) {
	npm(t)
	dir := t.TempDir()
	packed, err := sdk.Tarball()
	tarball := write(t, dir, packed, err)
	run(t, dir, "npm", "init", "--yes", "--init-type=module")
	run(t, dir, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", tarball)
	for _, part := range []string{"test", "types"} {
		run(t, dir, "cp", "-r", absolute("../../sdk/node/"+part), dir)
	}
	require.Regexp(t, `\n# pass \d\d\n# fail 0\n`, run(t, dir, "node", "--test", "--test-reporter=tap"))
	compiler := absolute("../../sdk/node/node_modules/typescript/bin/tsc")
	if _, err := os.Stat(compiler); err != nil {
		missing(t, "TypeScript (npm ci in sdk/node)")
	}
	run(t, dir, "node", compiler, "--project", "types")
}

func unzip(t *testing.T, content []byte) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	files := map[string]string{}
	for _, file := range archive.File {
		text, err := archive.Open(file.Name)
		require.NoError(t, err)
		read, err := io.ReadAll(text)
		require.NoError(t, err)
		files[file.Name] = string(read)
	}
	return files
}

func untar(t *testing.T, content []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	archive := tar.NewReader(unzipped)
	files := map[string]string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		text, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[header.Name] = string(text)
	}
}

// below are the files in the directory.
func below(dir string, files map[string]string) map[string]string {
	found := map[string]string{}
	for name, text := range files {
		if strings.HasPrefix(name, dir) {
			found[name] = text
		}
	}
	return found
}
