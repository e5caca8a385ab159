// Package languages tests the SDKs of other languages than Go, under the
// supervisor that the orchestrator has and under the orchestrator itself.
//
// A language is left out where what its SDK needs is not installed, unless
// HOLDFAST_TEST_LANGUAGES=1; make test-languages installs it.
package languages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

// patience bounds every wait for something that should happen soon.
const patience = time.Minute

func TestMain(m *testing.M) {
	if order := os.Getenv(hostToBeKilled); order != "" {
		beKilled(order)
		return
	}
	storetest.Main(m)
}

// A language is what its programs are run with.
type language struct {
	name string
	// handler is the test handler's program, example the example's.
	handler, example string
	// env is for the handler to find its SDK.
	env []string
	// types are the job types of the example, which begin with prefix.
	prefix string
	// find returns the interpreter, or says what is missing.
	find func(ctx context.Context) (string, error)
}

var languages = []language{
	{
		name: "python", handler: "testdata/handler.py", example: "../../examples/handlers/python/main.py",
		env: []string{"PYTHONPATH=" + absolute("../../examples/handlers/python")}, prefix: "PY_", find: findPython,
	},
	{
		name: "node", handler: "testdata/handler.mjs", example: "../../examples/handlers/node/main.js",
		prefix: "NODE_", find: findNode,
	},
}

// forEach runs a test in every language that is installed.
func forEach(t *testing.T, test func(t *testing.T, l interpreted)) {
	t.Helper()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			interpreter, err := l.find(t.Context())
			switch {
			case err == nil:
				test(t, interpreted{language: l, interpreter: interpreter})
			case os.Getenv("HOLDFAST_TEST_LANGUAGES") == "1":
				require.NoError(t, err, "HOLDFAST_TEST_LANGUAGES=1 demands it; make test-languages installs it")
			default:
				t.Skip(err)
			}
		})
	}
}

// findPython returns the first interpreter that has what the SDK imports: often
// it is the system's that has it, and another one that comes first.
func findPython(ctx context.Context) (string, error) {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		probe := exec.CommandContext(ctx, path, "-c", "import sys, grpc, google.protobuf; sys.exit(sys.version_info < (3, 11))")
		if probe.Run() == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no Python 3.11 with grpcio and protobuf (Debian: python3-grpcio, python3-protobuf)")
}

func findNode(ctx context.Context) (string, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("there is no Node.js: %w", err)
	}
	version, err := exec.CommandContext(ctx, path, "-p", "+process.versions.node.split('.')[0] >= 18").Output()
	if err != nil || strings.TrimSpace(string(version)) != "true" {
		return "", fmt.Errorf("%s is older than Node.js 18", path)
	}
	if _, err := os.Stat("../../examples/handlers/node/node_modules/@grpc/grpc-js"); err != nil {
		return "", fmt.Errorf("the SDK's packages are not installed (npm ci in examples/handlers/node): %w", err)
	}
	return path, nil
}

func absolute(path string) string {
	full, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return full
}
