package deploy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type workflow struct {
	Jobs map[string]struct {
		Strategy struct{ Matrix map[string]any }
		Services map[string]struct{ Image string }
		Steps    []struct{ Run string }
	}
}

func workflowOf(t *testing.T, name string) workflow {
	t.Helper()
	var w workflow
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/"+name)), &w))
	return w
}

// commands are what the jobs of a workflow run, without sudo and the version of PostgreSQL.
func (w workflow) commands() map[string]bool {
	all := map[string]bool{}
	for _, job := range w.Jobs {
		for _, step := range job.Steps {
			command := regexp.MustCompile(`^sudo env .* make `).ReplaceAllString(step.Run, "make ")
			command, _, _ = strings.Cut(command, " POSTGRES=")
			all[command] = true
		}
	}
	delete(all, "")
	return all
}

// steps are the commands of a script in .ci.
func steps(t *testing.T, script string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, step := range regexp.MustCompile(`(?m)^\s*(?:step|try) (?:scripts/as-user\.sh )?(.+)$|'((?:go|make) [^']+)'`).FindAllStringSubmatch(read(t, script), -1) {
		all[step[1]+step[2]] = true
	}
	require.NotEmpty(t, all)
	return all
}

func TestGitHubRunsTheStepsOfTheLocalScript(t *testing.T) {
	want := steps(t, ".ci/run")
	delete(want, "scripts/need.sh docker") // the runners have it
	// These need a registry.
	want["make test-jaeger"], want["make test-images"], want["npm ci --prefix examples/handlers/node"] = true, true, true
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(workflowOf(t, "ci.yml").commands())))
	require.Contains(t, workflowOf(t, "nightly.yml").commands(), "make nightly")
	require.Contains(t, workflowOf(t, "release.yml").commands(), "make release-snapshot")
}

// go vet is no step of its own, since the linter runs its analyzers.
func TestTheLinterRunsWhatVetDoes(t *testing.T) {
	help, err := exec.CommandContext(t.Context(), "go", "tool", "vet", "help").CombinedOutput()
	require.NoError(t, err, "%s", help)
	_, list, _ := strings.Cut(string(help), "Registered analyzers:")
	list, _, _ = strings.Cut(list, "By default")
	var vet []string
	for _, analyzer := range regexp.MustCompile(`(?m)^    (\w+) `).FindAllStringSubmatch(list, -1) {
		vet = append(vet, analyzer[1])
	}
	require.Contains(t, vet, "printf")
	var config struct {
		Linters struct {
			Enable   []string
			Settings struct{ Govet struct{ Enable []string } }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".golangci.yml")), &config))
	require.Contains(t, config.Linters.Enable, "govet")
	require.ElementsMatch(t, vet, config.Linters.Settings.Govet.Enable)
}

func TestNightlyRunsWhatTakesLong(t *testing.T) {
	nightly := steps(t, ".ci/nightly")
	for _, command := range []string{
		"make bench-check STRICT=1", "make test-peers", "make test LONG=1", "scripts/test-containers.sh", "make test-failover", "make failover-hosts",
		"make gates", "make soak", "make transfer", "make test-roles",
		"make test-deep N=10000", "make chaos DURATION=20m", "make chaos-aimed FAILOVERS=20", "make chaos-controls",
	} {
		require.Contains(t, nightly, command)
		require.NotContains(t, steps(t, ".ci/run"), command)
	}
}

func TestEveryTargetOfTheScriptsIsThere(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, script := range []string{".ci/run", ".ci/nightly"} {
		for command := range steps(t, script) {
			if target, ok := strings.CutPrefix(command, "make "); ok {
				require.Contains(t, makefile, "\n"+strings.Fields(target)[0]+": ", command)
			}
		}
	}
}

func TestGitHubTestsOnTheSupportedVersionsOfPostgreSQL(t *testing.T) {
	oldest := regexp.MustCompile(`oldestMajor = (\d+)`).FindStringSubmatch(read(t, "store/embedded/find.go"))
	require.NotNil(t, oldest)
	require.Equal(t, "14", oldest[1])
	require.Equal(t, []any{14, 15, 16, 17, 18}, workflowOf(t, "ci.yml").Jobs["test"].Strategy.Matrix["postgres"])
}

func TestGitHubTestsTheJaegerOfCompose(t *testing.T) {
	require.Equal(t, composed(t).Services["jaeger"].Image, workflowOf(t, "ci.yml").Jobs["jaeger"].Services["jaeger"].Image)
}

// Root runs only the tests that call os.Geteuid or use a cgroup, directly or through
// another function of their package.
func TestMakeTestRootRunsEveryTestThatAsksForRoot(t *testing.T) {
	arguments, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/root-tests.sh")).Output()
	require.NoError(t, err)
	chosen, packages, _ := strings.Cut(string(arguments), "\n")
	run := regexp.MustCompile(strings.TrimPrefix(chosen, "-run="))
	asks := 0
	for _, tree := range []string{"api", "cmd", "migrations", "plugin", "runtime", "store"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, tree), func(dir string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			for _, name := range askForRoot(t, dir) {
				asks++
				require.Contains(t, packages, "."+strings.TrimPrefix(dir, root)+"\n", name)
				require.Regexp(t, run, name)
			}
			return nil
		}))
	}
	require.Greater(t, asks, 10)
}

// askForRoot are the tests of a package that reach os.Geteuid or a cgroup.
func askForRoot(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	uses := map[string]map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil {
				used := map[string]bool{}
				ast.Inspect(f, func(n ast.Node) bool {
					if identifier, ok := n.(*ast.Ident); ok {
						used[identifier.Name] = true
					}
					return true
				})
				uses[f.Name.Name] = used
			}
		}
	}
	var reaches func(name string, seen map[string]bool) bool
	reaches = func(name string, seen map[string]bool) bool {
		if name == "Geteuid" || name == "CgroupAuto" {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(slices.Collect(maps.Keys(uses[name])), func(used string) bool { return reaches(used, seen) })
	}
	var found []string
	for name := range uses {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && reaches(name, map[string]bool{}) {
			found = append(found, name)
		}
	}
	return found
}
