package author

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/holdfast-jobs/holdfast/examples/handlers"
)

// environment is where a project in Python has its packages when no Python has
// them.
const environment = ".venv"

// python runs the handler: one that has the packages, or that of an environment
// which the commands make.
func python(p project) string {
	if p.Python != "" {
		return p.Python
	}
	return environment + "/bin/python"
}

// interpreter is what the first line of the handler says. The program itself is
// what an orchestrator launches, so that it sees when that has changed.
func interpreter(p project) string {
	path := p.Python
	if path == "" {
		dir, err := filepath.Abs(p.Dir)
		if err != nil {
			dir = "."
		}
		path = filepath.Join(dir, python(p))
	}
	if strings.ContainsAny(path, " \t") || len(path) > maxInterpreter {
		return "/usr/bin/env python3" // the kernel takes no more
	}
	return path
}

// maxInterpreter is what every kernel takes, in bytes.
const maxInterpreter = 120

func preparePython(p project) []string {
	test := quote(python(p)) + " -m unittest"
	if p.Python != "" {
		return []string{test}
	}
	return []string{"python3 -m venv " + environment, environment + "/bin/pip install grpcio protobuf", test}
}

// sdkOf are the files of the language's SDK, below holdfast/.
func sdkOf(language string) ([]file, error) {
	var all []file
	err := fs.WalkDir(handlers.SDKs, language+"/holdfast", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(handlers.SDKs, name)
		all = append(all, file{path: strings.TrimPrefix(name, language+"/"), text: text, mode: 0o644})
		return err
	})
	return all, err
}

// nodeSDK has the versions of packages besides, as the example has them.
func nodeSDK(p project) ([]file, error) {
	all, err := sdkOf("node")
	if err != nil {
		return nil, err
	}
	lock, err := fs.ReadFile(handlers.SDKs, "node/package-lock.json")
	if err != nil {
		return nil, err
	}
	var names struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(lock, &names); err != nil {
		return nil, fmt.Errorf("node/package-lock.json: %w", err)
	}
	lock = bytes.ReplaceAll(lock, fmt.Appendf(nil, "%q: %q", "name", names.Name), fmt.Appendf(nil, "%q: %q", "name", p.Name))
	return append(all, file{path: "package-lock.json", text: lock, mode: 0o644}), nil
}
