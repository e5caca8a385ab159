package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dockerfiles are those in docs/how-to/deploy.md.
var dockerfiles = []string{"deploy/Dockerfile", "deploy/Dockerfile.slim"}

// instruction is an instruction of a Dockerfile.
type instruction struct{ name, arguments string }

// instructions are those of a Dockerfile, without comments and with lines joined.
func instructions(t *testing.T, path string) []instruction {
	t.Helper()
	var found []instruction
	text := strings.ReplaceAll(read(t, path), "\\\n", " ")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, arguments, _ := strings.Cut(line, " ")
		found = append(found, instruction{name, strings.Join(strings.Fields(arguments), " ")})
	}
	return found
}

func only(t *testing.T, path, name string) string {
	t.Helper()
	all := each(t, path, name)
	require.Len(t, all, 1, "%s in %s", name, path)
	return all[0]
}

func each(t *testing.T, path, name string) []string {
	t.Helper()
	var found []string
	for _, i := range instructions(t, path) {
		if i.name == name {
			found = append(found, i.arguments)
		}
	}
	return found
}

// sources are the paths that an image copies from the repository.
func sources(t *testing.T, path string) []string {
	t.Helper()
	var found []string
	for _, copied := range each(t, path, "COPY") {
		if parts := strings.Fields(copied); !strings.HasPrefix(parts[0], "--from=") {
			for _, part := range parts[:len(parts)-1] {
				found = append(found, strings.TrimSuffix(part, "/"))
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestTheSourcesOfTheImagesExist(t *testing.T) {
	sent := strings.Fields(read(t, ".dockerignore"))
	require.Contains(t, sent, "*", "only listed files go to the builder")
	for _, path := range dockerfiles {
		for _, source := range sources(t, path) {
			_, err := os.Stat(filepath.Join(root, source))
			require.NoError(t, err, path)
			require.True(t, slices.ContainsFunc(sent, func(line string) bool {
				return line == "!"+source || strings.HasPrefix(source, strings.TrimPrefix(line, "!")+"/")
			}), ".dockerignore hides %s of %s", source, path)
		}
	}
	for _, line := range sent {
		require.False(t, strings.HasPrefix(line, "!deploy") && line != "!deploy/config.yaml", "%s: no secret goes to the builder", line)
	}
}

// Without this test, only a build of the images would show that a package is missing.
func TestImagesHaveEveryPackageThatTheProgramsNeed(t *testing.T) {
	list := exec.Command("go", "list", "-C", root, "-deps", "-f", "{{if .Module}}{{.Module.Main}} {{.ImportPath}}{{end}}", "./cmd/...")
	output, err := list.Output()
	require.NoError(t, err)
	needed := 0
	for line := range strings.Lines(string(output)) {
		path, ours := strings.CutPrefix(strings.TrimSpace(line), "true github.com/holdfast-jobs/holdfast/")
		if !ours {
			continue
		}
		needed++
		for _, file := range dockerfiles {
			require.True(t, slices.ContainsFunc(sources(t, file), func(source string) bool {
				return path == source || strings.HasPrefix(path, source+"/")
			}), "%s copies %s", file, path)
		}
	}
	require.Greater(t, needed, 20)
}

func TestImagesArePinnedAndUnprivileged(t *testing.T) {
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	for _, path := range dockerfiles {
		bases := map[string]string{}
		for _, argument := range each(t, path, "ARG") {
			name, value, _ := strings.Cut(argument, "=")
			bases[name] = value
		}
		require.Regexp(t, `^golang:`+regexp.QuoteMeta(goVersion)+`\.\d+-`, bases["BUILD"], path)
		for _, name := range []string{"BUILD", "BASE"} {
			require.Regexp(t, pinned, bases[name], path)
		}
		require.Equal(t, []string{"${BUILD} AS build", "${BASE}"}, each(t, path, "FROM"))
		require.Empty(t, bases["VERSION"], "%s: an image without a version says so", path)
		require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, only(t, path, "USER"), "who demands a user that is not root sees no name")
		require.Equal(t, `["/usr/local/bin/orchestrator"]`, only(t, path, "ENTRYPOINT"))
		require.Contains(t, only(t, path, "HEALTHCHECK"), `["/usr/local/bin/orchestrator", "health"]`)
		require.Empty(t, each(t, path, "ADD"))
	}
	require.Contains(t, read(t, "deploy/Dockerfile"), "ARG BASE=gcr.io/distroless/static-")
}

// Both Dockerfiles contain the same build stage.
func TestBothImagesHaveTheSamePrograms(t *testing.T) {
	var stages [][]instruction
	for _, path := range dockerfiles {
		all := instructions(t, path)
		begin := slices.Index(all, instruction{"FROM", "${BUILD} AS build"})
		end := slices.Index(all, instruction{"FROM", "${BASE}"})
		require.Greater(t, end, begin)
		stages = append(stages, all[begin:end])
	}
	require.Equal(t, stages[0], stages[1])
}

func TestImagesContainTheLicensesOfTheirModules(t *testing.T) {
	require.Contains(t, read(t, "cmd/orchestrator/internal/licenses/third_party.txt"), "The Go standard library")
	for _, path := range dockerfiles {
		copied := each(t, path, "COPY")
		require.Contains(t, copied, "LICENSE /usr/share/doc/holdfast/LICENSE", path)
		require.Contains(t, copied,
			"--from=build /src/cmd/orchestrator/internal/licenses/third_party.txt /usr/share/doc/holdfast/THIRD_PARTY_LICENSES", path)
	}
}

// linked are the linker flags that the images use for a version.
func linked(t *testing.T, version string) string {
	t.Helper()
	for _, run := range each(t, "deploy/Dockerfile", "RUN") {
		if build := regexp.MustCompile(`^CGO_ENABLED=0 go build -trimpath .*-ldflags "([^"]+)"`).FindStringSubmatch(run); build != nil {
			return strings.ReplaceAll(build[1], "${VERSION}", version)
		}
	}
	t.Fatal("the image is not built by go build -trimpath -ldflags")
	return ""
}
