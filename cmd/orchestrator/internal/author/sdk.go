package author

import (
	"path/filepath"
	"strings"

	"github.com/holdfast-jobs/holdfast/sdk"
)

// environment is the project's virtual environment for Python.
const environment = ".venv"

// interpreter is the first line of the plugin. The orchestrator launches and watches
// the file of the plugin, not the interpreter.
func interpreter(p project) string {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		dir = "."
	}
	path := filepath.Join(dir, environment, "bin/python")
	if strings.ContainsAny(path, " \t") || len(path) > maxInterpreter {
		// Kernels refuse it, so a shell runs these lines. Python reads them as a string.
		return "#!/bin/sh\n''':'\nexec \"$(dirname \"$0\")/" + environment + "/bin/python\" \"$0\" \"$@\"\n'''"
	}
	return "#!" + path
}

// maxInterpreter is what every kernel accepts, in bytes.
const maxInterpreter = 120

func preparePython(p project) []string {
	create := "python3 -m venv "
	if p.Python != "" {
		create = quote(p.Python) + " -m venv --system-site-packages "
	}
	bin := environment + "/bin/"
	return []string{create + environment, bin + "pip install -r requirements.txt", bin + "python -m unittest"}
}

// vendored is the file of a package in a project. No registry needs to have the
// package.
func vendored(packed sdk.Package, err error) (file, error) {
	return file{path: "vendor/" + packed.Name, text: packed.Content, mode: 0o644}, err
}
