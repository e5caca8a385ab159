package author

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/template"
)

// module is the module of the SDK for Go.
const module = "github.com/holdfast-jobs/holdfast"

// goVersion is the Go version in the project's go.mod, the same as the SDK's.
const goVersion = "1.26.0"

//go:embed all:templates
var templates embed.FS

// project is what to create.
type project struct {
	// Name is the name of the project, its binary and its plugin.
	Name string
	// Dir is the directory; it must not exist, or be empty.
	Dir string
	// Lang is one of languageNames.
	Lang string
	// Type is the job type; typeOf(Name) when it is empty.
	Type string
	// Orchestrator is how to call this program in a shell.
	Orchestrator string
	// Version of Go's module is required, and found in Replace when that is
	// not empty.
	Version string
	Replace string
	// Python is the path of one that has grpcio and protobuf, which the project's
	// environment then uses; empty for none.
	Python string
}

// languageNames are the languages that a project can have.
func languageNames() []string { return slices.Sorted(maps.Keys(languages)) }

var aName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

// reserved are names of devices on Windows. Go refuses them in a module's path.
var reserved = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// maxName is short enough for every use of the name.
const maxName = 60

// typeOf is the job type of a name: count-words makes COUNT_WORDS.
func typeOf(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

var aType = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,199}$`)

// check says what is wrong with the project before anything is written.
func (p project) check() error {
	switch {
	case !aName.MatchString(p.Name) || len(p.Name) > maxName:
		return fmt.Errorf("the name %q is not of the form count-words: small letters and digits, at most %d, with - or _ between", p.Name, maxName)
	case reserved.MatchString(p.Name):
		return fmt.Errorf("the name %q is that of a device on Windows, where the project could not be stored; choose another", p.Name)
	case p.Type != "" && !aType.MatchString(p.Type):
		return fmt.Errorf("the job type %q is not of the form COUNT_WORDS", p.Type)
	case languages[p.Lang] == nil:
		return fmt.Errorf("there is no scaffold for %q; there are %s", p.Lang, strings.Join(languageNames(), ", "))
	}
	return nil
}

// write creates the project. It refuses a directory that is not empty.
func (p project) write() error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Type == "" {
		p.Type = typeOf(p.Name)
	}
	entries, err := os.ReadDir(p.Dir)
	switch {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s is not empty; nothing is overwritten", p.Dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s is a file, or below one; name another directory with --dir", p.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	files, err := p.files()
	if err != nil {
		return err
	}
	for _, f := range files {
		target := filepath.Join(p.Dir, filepath.FromSlash(f.path))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := create(target, f); err != nil {
			return err
		}
	}
	return nil
}

// create fails if the file exists.
func create(path string, f file) error {
	target, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	if _, err := target.Write(f.text); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}

// file is a file of the project.
type file struct {
	path string
	text []byte
	mode os.FileMode
}

// files are the language's templates filled in, and the package of its SDK.
func (p project) files() ([]file, error) {
	l := languages[p.Lang]
	var all []file
	var packed file
	if l.sdk != nil {
		var err error
		if packed, err = l.sdk(); err != nil {
			return nil, err
		}
		all = append(all, packed)
	}
	err := fs.WalkDir(templates, path.Join("templates", p.Lang), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		parsed, err := template.ParseFS(templates, name)
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, p.data(l, packed.path)); err != nil {
			return err
		}
		relative := strings.TrimPrefix(name, "templates/"+p.Lang+"/")
		all = append(all, file{path: l.target(relative), text: text.Bytes(), mode: l.mode(relative)})
		return nil
	})
	return all, err
}

// data is what the templates refer to. The package is the path of the SDK's.
func (p project) data(l *language, packed string) any {
	shared := p // the README is for everyone, wherever the program is
	shared.Orchestrator = "orchestrator"
	return struct {
		project
		Module, GoVersion, Binary, Interpreter, Package string
		Commands                                        []string
	}{p, module, goVersion, l.binary(p), interpreter(p), packed, shared.commands()[1:]}
}
