package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../../.."

func project(t *testing.T) Project {
	return Project{
		Name: "count-words", Dir: filepath.Join(t.TempDir(), "new"), Lang: "go", Orchestrator: "orchestrator",
		Version: "v1.2.3",
	}
}

func read(t *testing.T, p Project, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, name))
	require.NoError(t, err)
	return string(text)
}

func TestTheModuleIsRequiredAsItIsPublished(t *testing.T) {
	p := project(t)
	require.NoError(t, p.Write())
	require.Equal(t, "module example.com/count-words\n\ngo 1.26.0\n\nrequire github.com/holdfast-jobs/holdfast v1.2.3\n", read(t, p, "go.mod"))
}

func TestACheckoutTakesTheModulesPlace(t *testing.T) {
	p := project(t)
	p.Version, p.Replace = "v0.0.0", "/src/holdfast"
	require.NoError(t, p.Write())
	require.Contains(t, read(t, p, "go.mod"), "holdfast v0.0.0\n\nreplace github.com/holdfast-jobs/holdfast => /src/holdfast\n")
}

func TestTheScaffoldAsksForTheGoOfTheModule(t *testing.T) {
	text, err := os.ReadFile(root + "/go.mod")
	require.NoError(t, err)
	require.Equal(t, goVersion, regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(string(text))[1])
	require.Equal(t, Module, regexp.MustCompile(`(?m)^module (\S+)$`).FindStringSubmatch(string(text))[1])
}

func TestNamesAreWhereTheyBelong(t *testing.T) {
	p := project(t)
	require.NoError(t, p.Write())
	require.Contains(t, read(t, p, "main.go"), `plugin.HandleResult("COUNT_WORDS", Count`)
	require.Contains(t, read(t, p, "config.yaml"), "  - name: count-words\n    path: bin/count-words\n")
	readme := read(t, p, "README.md")
	require.Contains(t, readme, "\norchestrator submit COUNT_WORDS --payload")
	require.NotContains(t, readme, p.Dir)
	require.FileExists(t, filepath.Join(p.Dir, ".gitignore"))

	p.Dir, p.Type = filepath.Join(t.TempDir(), "new"), "WORDS"
	require.NoError(t, p.Write())
	require.Contains(t, read(t, p, "main.go"), `"WORDS"`)
}

func TestNothingIsOverwritten(t *testing.T) {
	p := project(t)
	require.NoError(t, p.Write())
	before := read(t, p, "main.go")
	p.Type = "OTHER"
	require.ErrorContains(t, p.Write(), "is not empty; nothing is overwritten")
	require.Equal(t, before, read(t, p, "main.go"))

	p.Dir = filepath.Join(p.Dir, "main.go")
	require.ErrorContains(t, p.Write(), "main.go is a file, or below one; name another directory")

	p.Dir = t.TempDir()
	require.NoError(t, p.Write(), "an empty directory is as good as none")
}

func TestNamesThatCannotBeAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Project){
		`the name "Count Words" is not of the form`: func(p *Project) { p.Name = "Count Words" },
		`the name "../up" is not`:                   func(p *Project) { p.Name = "../up" },
		`the name "" is not`:                        func(p *Project) { p.Name = "" },
		`the name "con" is that of a device`:        func(p *Project) { p.Name = "con" },
		`the job type "a b" is not`:                 func(p *Project) { p.Type = "a b" },
		`there is no scaffold for "cobol"`:          func(p *Project) { p.Lang = "cobol" },
	} {
		p := project(t)
		change(&p)
		require.ErrorContains(t, p.Write(), want)
		require.NoDirExists(t, p.Dir)
	}
}

func TestCommandsAreFew(t *testing.T) {
	p := project(t)
	for _, p.Lang = range Languages() {
		require.Less(t, 1+len(p.Commands()), 10, "with `handlers new` itself")
	}
	p.Lang = "python"
	require.Contains(t, p.Commands(), ".venv/bin/pip install grpcio protobuf")
	p.Python = "/opt/python3"
	require.Contains(t, p.Commands(), "/opt/python3 -m unittest")
	p.Dir, p.Lang = "/a b/it's", "go"
	require.Equal(t, `cd '/a b/it'\''s'`, p.Commands()[0])
}

func TestWhatAReleaseIs(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.1.0-rc.1": true, "(devel)": false, "": false,
		"v0.0.0-20260102030405-abcdefabcdef": false, "v1.2.3+dirty": false, "v1.2.4-0.20260102030405-abcdefabcdef": false,
	} {
		require.Equal(t, want, Published(version), version)
	}
}

func TestACheckoutIsFoundFromWithin(t *testing.T) {
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	within, err := filepath.Abs("templates")
	require.NoError(t, err)
	require.Equal(t, top, Checkout("", t.TempDir(), within))
	require.Empty(t, Checkout(t.TempDir()))
}

func TestTheFirstLineNamesThePythonThatHasWhatItNeeds(t *testing.T) {
	for python, want := range map[string]string{
		"/opt/python3":   "#!/opt/python3\n",
		"":               "/new/.venv/bin/python\n",
		"/my py/python3": "#!/usr/bin/env python3\n",
	} {
		p := project(t)
		p.Lang, p.Python = "python", python
		require.NoError(t, p.Write())
		require.Contains(t, read(t, p, "handler.py"), want)
	}
}

func TestTheSDKsComeAlong(t *testing.T) {
	for lang, executable := range map[string]string{"python": "handler.py", "node": "main.js"} {
		p := project(t)
		p.Lang, p.Python = lang, "/opt/python3"
		require.NoError(t, p.Write())
		info, err := os.Stat(filepath.Join(p.Dir, executable))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
		sdk := root + "/examples/handlers/" + lang + "/holdfast"
		require.NoError(t, filepath.WalkDir(sdk, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.Name() == "__pycache__":
				return filepath.SkipDir
			case entry.IsDir():
				return nil
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			name, err := filepath.Rel(filepath.Dir(sdk), path)
			require.NoError(t, err)
			require.Equal(t, string(want), read(t, p, name))
			return nil
		}))
	}
	p := project(t)
	p.Lang = "node"
	require.NoError(t, p.Write())
	require.Contains(t, read(t, p, "package-lock.json"), `"name": "count-words"`)
	require.NotContains(t, read(t, p, "package-lock.json"), "holdfast-example")
}
