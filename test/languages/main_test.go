// Package languages tests the SDKs for Python and Node.js: the packages, with the
// orchestrator's supervisor, and with the orchestrator itself.
//
// It skips a language whose interpreter or packages are missing, unless
// HOLDFAST_TEST_LANGUAGES=1. make test-languages installs them.
package languages

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/sdktest"
)

// patience limits every wait for something that should happen soon.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if order := os.Getenv(hostToBeKilled); order != "" {
		beKilled(order)
		return
	}
	pgtest.Main(m)
}

// language is one that has an SDK.
type language struct {
	name string
	// prefix is what the example's job types begin with.
	prefix string
	// install installs the SDK's package and returns where the programs are, once.
	install func() (programs, error)
}

// programs are the paths of an interpreter that has the SDK, and of what it runs.
type programs struct{ interpreter, handler, example string }

var languages = []language{
	{name: "python", prefix: "PY_", install: installPython},
	{name: "node", prefix: "NODE_", install: installNode},
}

// interpreted is a language whose SDK is installed.
type interpreted struct {
	language
	programs
}

// forEach runs a test in every language that is installed.
func forEach(t *testing.T, test func(t *testing.T, l interpreted)) {
	t.Helper()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			installed, err := l.install()
			if err != nil {
				missing(t, err.Error())
			}
			test(t, interpreted{language: l, programs: installed})
		})
	}
}

// missing skips the test because something is not installed, or fails it where
// everything must be.
func missing(t *testing.T, what string) {
	t.Helper()
	require.NotEqual(t, "1", os.Getenv("HOLDFAST_TEST_LANGUAGES"), "HOLDFAST_TEST_LANGUAGES=1 requires it; make test-languages installs it: %s", what)
	t.Skip(what)
}

// installs is where the tests install the SDKs.
const installs = "../../bin/languages"

var installPython = sync.OnceValues(func() (programs, error) {
	dir, err := empty(installs + "/python")
	if err != nil {
		return programs{}, err
	}
	interpreter, err := sdktest.Python(context.Background(), dir)
	return programs{interpreter, absolute("testdata/handler.py"), absolute("../../examples/handlers/python/main.py")}, err
})

// Node.js looks for packages beside the program, so the programs are copied.
var installNode = sync.OnceValues(func() (programs, error) {
	return nodeProject(installs+"/node", "../../examples/handlers/node/node_modules")
})

// nodeProject makes a project with the SDK, the given packages and all programs.
func nodeProject(path, modules string) (programs, error) {
	dir, err := empty(path)
	if err != nil {
		return programs{}, err
	}
	interpreter, err := sdktest.Node(context.Background(), dir, modules)
	if err != nil {
		return programs{}, err
	}
	scripts, err := filepath.Glob("testdata/*.mjs")
	if err != nil {
		return programs{}, err
	}
	for _, script := range append(scripts, "../../examples/handlers/node/main.js") {
		text, err := os.ReadFile(script)
		if err != nil {
			return programs{}, err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(script)), text, 0o755); err != nil {
			return programs{}, err
		}
	}
	return programs{interpreter, filepath.Join(dir, "handler.mjs"), filepath.Join(dir, "main.js")}, nil
}

// empty makes an empty directory, and returns its absolute path.
func empty(path string) (string, error) {
	dir := absolute(path)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

func absolute(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return full
}
