package author

import (
	"path/filepath"
	"strings"

	"github.com/holdfast-jobs/holdfast/sdk"
)

// environment is the project's virtual environment for Python.
const environment = ".venv"

// interpreter is the beginning of the handler, which says what runs it. An
// orchestrator launches the handler itself, so that it sees when that changes.
func interpreter(p project) string {
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		dir = "."
	}
	path := filepath.Join(dir, environment, "bin/python")
	if strings.ContainsAny(path, " \t") || len(path) > maxInterpreter {
		// No kernel takes it, so a shell does, which Python reads as a string.
		return "#!/bin/sh\n''':'\nexec \"$(dirname \"$0\")/" + environment + "/bin/python\" \"$0\" \"$@\"\n'''"
	}
	return "#!" + path
}

// maxInterpreter is what every kernel takes, in bytes.
const maxInterpreter = 120

func preparePython(p project) []string {
	create := "python3 -m venv "
	if p.Python != "" {
		create = quote(p.Python) + " -m venv --system-site-packages "
	}
	bin := environment + "/bin/"
	return []string{create + environment, bin + "pip install -r requirements.txt", bin + "python -m unittest"}
}

// vendored is the file of a package in a project: the package comes along because
// no registry may have it.
func vendored(packed sdk.Package, err error) (file, error) {
	return file{path: "vendor/" + packed.Name, text: packed.Content, mode: 0o644}, err
}
