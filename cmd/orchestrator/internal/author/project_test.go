package author

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../../.."

func countWords(t *testing.T) project {
	return project{
		Name: "count-words", Dir: filepath.Join(t.TempDir(), "new"), Lang: "go", Orchestrator: "orchestrator",
		Version: "v1.2.3",
	}
}

func read(t *testing.T, p project, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, name))
	require.NoError(t, err)
	return string(text)
}

func TestTheModuleIsRequiredAsItIsPublished(t *testing.T) {
	p := countWords(t)
	require.NoError(t, p.write())
	require.Equal(t, "module example.com/count-words\n\ngo 1.26.0\n\nrequire github.com/holdfast-jobs/holdfast v1.2.3\n", read(t, p, "go.mod"))
}

func TestACheckoutTakesTheModulesPlace(t *testing.T) {
	p := countWords(t)
	p.Version, p.Replace = "v0.0.0", "/src/holdfast"
	require.NoError(t, p.write())
	require.Contains(t, read(t, p, "go.mod"), "holdfast v0.0.0\n\nreplace github.com/holdfast-jobs/holdfast => /src/holdfast\n")
}

func TestTheScaffoldAsksForTheGoOfTheModule(t *testing.T) {
	text, err := os.ReadFile(root + "/go.mod")
	require.NoError(t, err)
	require.Equal(t, goVersion, regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(text))[1])
	require.Equal(t, module, regexp.MustCompile(`(?m)^module (\S+)$`).FindStringSubmatch(string(text))[1])
}

func TestNamesAreWhereTheyBelong(t *testing.T) {
	p := countWords(t)
	require.NoError(t, p.write())
	require.Contains(t, read(t, p, "main.go"), `plugin.HandleResult("COUNT_WORDS", Count`)
	require.Contains(t, read(t, p, "config.yaml"), "  - name: count-words\n    path: bin/count-words\n")
	readme := read(t, p, "README.md")
	require.Contains(t, readme, "\norchestrator submit COUNT_WORDS --payload")
	require.NotContains(t, readme, p.Dir)
	require.FileExists(t, filepath.Join(p.Dir, ".gitignore"))

	p.Dir, p.Type = filepath.Join(t.TempDir(), "new"), "WORDS"
	require.NoError(t, p.write())
	require.Contains(t, read(t, p, "main.go"), `"WORDS"`)
}

func TestNothingIsOverwritten(t *testing.T) {
	p := countWords(t)
	require.NoError(t, p.write())
	before := read(t, p, "main.go")
	p.Type = "OTHER"
	require.ErrorContains(t, p.write(), "is not empty; nothing is overwritten")
	require.Equal(t, before, read(t, p, "main.go"))

	p.Dir = filepath.Join(p.Dir, "main.go")
	require.ErrorContains(t, p.write(), "main.go is a file, or below one; name another directory")

	p.Dir = t.TempDir()
	require.NoError(t, p.write(), "an empty directory is as good as none")
}

func TestNamesThatCannotBeAreRefused(t *testing.T) {
	for want, change := range map[string]func(*project){
		`the name "Count Words" is not of the form`: func(p *project) { p.Name = "Count Words" },
		`the name "../up" is not`:                   func(p *project) { p.Name = "../up" },
		`the name "" is not`:                        func(p *project) { p.Name = "" },
		`the name "con" is that of a device`:        func(p *project) { p.Name = "con" },
		`the job type "a b" is not`:                 func(p *project) { p.Type = "a b" },
		`there is no scaffold for "cobol"`:          func(p *project) { p.Lang = "cobol" },
	} {
		p := countWords(t)
		change(&p)
		require.ErrorContains(t, p.write(), want)
		require.NoDirExists(t, p.Dir)
	}
}

func TestCommandsAreFew(t *testing.T) {
	p := countWords(t)
	for _, p.Lang = range languageNames() {
		require.Less(t, 1+len(p.commands()), 10, "with `plugins new` itself")
	}
	p.Lang = "python"
	require.Contains(t, p.commands(), "python3 -m venv .venv")
	p.Python = "/opt/python3"
	require.Contains(t, p.commands(), "/opt/python3 -m venv --system-site-packages .venv")
	p.Dir, p.Lang = "/a b/it's", "go"
	require.Equal(t, `cd '/a b/it'\''s'`, p.commands()[0])
}

func TestWhatAReleaseIs(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-rc.1": true, "(devel)": false, "": false,
		"v0.0.0-20260102030405-abcdefabcdef": false, "v1.2.3+dirty": false, "v1.2.4-0.20260102030405-abcdefabcdef": false,
	} {
		require.Equal(t, want, isRelease(version), version)
	}
}

func TestACheckoutIsFoundFromWithin(t *testing.T) {
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	within, err := filepath.Abs("templates")
	require.NoError(t, err)
	require.Equal(t, top, findCheckout("", t.TempDir(), within))
	require.Empty(t, findCheckout(t.TempDir()))
}

func TestTheHandlerBeginsWithWhatRunsIt(t *testing.T) {
	p := countWords(t)
	p.Lang = "python"
	require.NoError(t, p.write())
	require.Regexp(t, "^#!"+p.Dir+"/.venv/bin/python\n\"\"\"", read(t, p, "handler.py"))
}

func TestTheHandlerRunsWherePathsAreTooOddForTheKernel(t *testing.T) {
	p := countWords(t)
	p.Lang, p.Dir = "python", filepath.Join(t.TempDir(), "my projects")
	require.NoError(t, p.write())
	bin := filepath.Join(p.Dir, ".venv/bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python"), []byte("#!/bin/sh\necho \"$@\""), 0o755))
	said, err := exec.CommandContext(t.Context(), filepath.Join(p.Dir, "handler.py"), "a b").Output()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(p.Dir, "handler.py")+" a b\n", string(said))
}

func TestThePackageOfTheSDKComesAlong(t *testing.T) {
	for lang, want := range map[string]struct{ executable, requires string }{
		"python": {"handler.py", "requirements.txt"}, "node": {"main.js", "package.json"},
	} {
		p := countWords(t)
		p.Lang = lang
		require.NoError(t, p.write())
		info, err := os.Stat(filepath.Join(p.Dir, want.executable))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		packages, err := filepath.Glob(filepath.Join(p.Dir, "vendor/*"))
		require.NoError(t, err)
		require.Len(t, packages, 1)
		require.Contains(t, read(t, p, want.requires), "vendor/"+filepath.Base(packages[0]))
	}
}

// The document shows what the scaffold writes and the commands that it prints,
// which another test runs.
func TestFirstHandlerDocumentShowsTheScaffold(t *testing.T) {
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	content, err := os.ReadFile(root + "/docs/tutorial/first-handler.md")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	commands := []string{"orchestrator plugins new count-words"}
	files := &bytes.Buffer{}
	for _, lang := range languageNames() {
		written := project{Name: "count-words", Dir: lang, Lang: lang, Orchestrator: "orchestrator", Version: "v0.0.0", Replace: checkout, Python: "/usr/bin/python3"}
		require.NoError(t, written.write())
		require.NoError(t, filepath.WalkDir(lang, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			files.Write(text)
			return err
		}))
		written.Dir = "count-words"
		commands = append(commands, written.commands()...)
		commands = append(commands, "orchestrator plugins new count-words --lang "+lang)
	}
	snippets := regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(string(content), -1)
	require.NotEmpty(t, snippets)
	for _, snippet := range snippets {
		switch kind, text := snippet[1], snippet[2]; kind {
		case "sh":
			for line := range strings.Lines(text) {
				command, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
				require.Contains(t, commands, command)
			}
		case "text": // what a command prints
		default:
			require.Contains(t, files.String(), text)
		}
	}
}
