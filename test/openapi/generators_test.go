package openapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	// The imports of the generated code.
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/ogen-go/ogen/middleware"
	_ "github.com/ogen-go/ogen/otelogen"
	_ "github.com/ogen-go/ogen/uri"
	_ "go.opentelemetry.io/otel"
	_ "go.opentelemetry.io/otel/metric"
	_ "go.opentelemetry.io/otel/semconv/v1.39.0"
	_ "go.opentelemetry.io/otel/trace"
)

const writtenDocument = "../../api/openapi.yaml"

func TestOAPICodegenGeneratesAClientThatDrivesTheServer(t *testing.T) {
	t.Parallel()
	const program = "testdata/client"
	module := newModule(t)
	client := filepath.Join(module, "client")
	require.NoError(t, os.Mkdir(client, 0o700))
	copyFile(t, filepath.Join(program, "client_test.go"), filepath.Join(client, "client_test.go"))
	run(t, ".", "go", "tool", "oapi-codegen", "-config", filepath.Join(program, "oapi-codegen.yaml"),
		"-o", filepath.Join(client, "client.gen.go"), writtenDocument)
	run(t, module, "env", "SERVER="+server.url, "OPERATOR="+operator, "PASSWORD="+server.password,
		"go", "test", "-count=1", "-v", "./client")
}

func TestOgenGeneratesAServerAndAClientThatCompile(t *testing.T) {
	t.Parallel()
	module := newModule(t)
	run(t, ".", "go", "tool", "ogen", "-loglevel", "error", "-target", filepath.Join(module, "ogen"), "-package", "ogen", writtenDocument)
	run(t, module, "go", "vet", "./ogen")
}

func TestOpenAPITypeScriptGeneratesTypesThatCompile(t *testing.T) {
	t.Parallel()
	dir := usesIn(t, "openapi-typescript.ts")
	run(t, ".", tool(t, "openapi-typescript"), writtenDocument, "--output", filepath.Join(dir, "generated.ts"))
	compileStrictly(t, dir)
}

func TestHeyAPIGeneratesAClientThatCompiles(t *testing.T) {
	t.Parallel()
	dir := usesIn(t, "hey-api.ts")
	run(t, ".", tool(t, "openapi-ts"), "--input", writtenDocument, "--output", filepath.Join(dir, "generated"), "--silent", "--no-log-file")
	compileStrictly(t, dir)
}

// newModule returns a new directory with this module's requirements.
func newModule(t *testing.T) string {
	t.Helper()
	module := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, name, filepath.Join(module, name))
	}
	return module
}

// usesIn returns a new directory with a program that uses the code generated beside it.
func usesIn(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, filepath.Join("testdata/typescript", program), filepath.Join(dir, "uses.ts"))
	return dir
}

// compileStrictly checks the types of uses.ts and of the generated code.
func compileStrictly(t *testing.T, dir string) {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	require.Greater(t, len(files), 1, "nothing was generated")
	run(t, dir, tool(t, "tsc"), append([]string{
		"--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler",
	}, files...)...)
}

// tool is the absolute path of a program that npm has installed.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata/typescript/node_modules/.bin", name))
	require.NoError(t, err)
	require.FileExists(t, path, "install it: npm ci --prefix test/openapi/testdata/typescript --ignore-scripts")
	return path
}

func run(t *testing.T, dir, program string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	require.NoError(t, err, "%s", program)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600))
}
