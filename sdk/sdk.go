// Package sdk holds the SDKs for Python and Node.js and packs them as pip and npm
// install them. A new project gets its package from here, so it needs no registry
// for the SDK.
package sdk

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed python/src/holdfast/*.py python/src/holdfast/*.pyi python/src/holdfast/py.typed
//go:embed python/pyproject.toml python/README.md python/LICENSE
//go:embed node/package.json node/index.js node/index.d.ts node/lib/* node/README.md node/LICENSE
var sources embed.FS

// Package is a file that pip or npm installs.
type Package struct {
	// Name is the file's name, which says the package's name and version.
	Name    string
	Content []byte
}

// packedAt is the time of every packed file: the same sources make the same bytes.
var packedAt = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Wheel is the SDK for Python: what pip makes of python/, without pip. The format
// is https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
func Wheel() (Package, error) {
	project, err := readProject()
	if err != nil {
		return Package{}, fmt.Errorf("python/pyproject.toml: %w", err)
	}
	stem := strings.ReplaceAll(project.Name, "-", "_") + "-" + project.Version
	info := stem + ".dist-info/"

	var wheel, record bytes.Buffer
	archive := zip.NewWriter(&wheel)
	add := func(name string, content []byte) error {
		if digest := sha256.Sum256(content); !strings.HasSuffix(name, "/RECORD") {
			fmt.Fprintf(&record, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(digest[:]), len(content))
		}
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: packedAt}
		header.SetMode(0o644)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return err
	}
	if err := walk("python/src/", add); err != nil {
		return Package{}, err
	}
	metadata, err := project.metadata()
	if err != nil {
		return Package{}, err
	}
	license, err := sources.ReadFile("python/LICENSE")
	if err != nil {
		return Package{}, err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{"LICENSE", license},
		{"METADATA", metadata},
		{"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: holdfast\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
	} {
		if err := add(info+file.name, file.content); err != nil {
			return Package{}, err
		}
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	if err := add(info+"RECORD", record.Bytes()); err != nil {
		return Package{}, err
	}
	if err := archive.Close(); err != nil {
		return Package{}, err
	}
	return Package{Name: stem + "-py3-none-any.whl", Content: wheel.Bytes()}, nil
}

// Tarball is the SDK for Node.js: what `npm pack` makes of node/.
func Tarball() (Package, error) {
	var manifest struct{ Name, Version string }
	text, err := sources.ReadFile("node/package.json")
	if err != nil {
		return Package{}, err
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return Package{}, fmt.Errorf("node/package.json: %w", err)
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err = walk("node/", func(name string, content []byte) error {
		header := &tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(content)), ModTime: packedAt}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	})
	if err != nil {
		return Package{}, err
	}
	if err := archive.Close(); err != nil {
		return Package{}, err
	}
	if err := zipped.Close(); err != nil {
		return Package{}, err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(manifest.Name, "@"), "/", "-")
	return Package{Name: name + "-" + manifest.Version + ".tgz", Content: packed.Bytes()}, nil
}

// walk calls add for every file below the directory, whose name ends in a slash,
// with the file's path from there.
func walk(dir string, add func(name string, content []byte) error) error {
	return fs.WalkDir(sources, strings.TrimSuffix(dir, "/"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return add(strings.TrimPrefix(path, dir), content)
	})
}

// project is what a wheel's metadata says, of pyproject.toml.
type project struct {
	Name         string              `json:"name"`
	Version      string              `json:"version"`
	Description  string              `json:"description"`
	Python       string              `json:"requires-python"`
	Dependencies []string            `json:"dependencies"`
	Extras       map[string][]string `json:"-"`
}

// aValue is a line of pyproject.toml that says what JSON says as well: a key with
// a string, or with a list of strings on one line.
var aValue = regexp.MustCompile(`(?m)^([a-z-]+) = (".*"|\[".*"\])$`)

func readProject() (project, error) {
	text, err := sources.ReadFile("python/pyproject.toml")
	if err != nil {
		return project{}, err
	}
	table := func(name string) ([]byte, error) {
		_, after, _ := strings.Cut(string(text), "\n["+name+"]\n")
		lines, _, _ := strings.Cut(after, "\n[")
		values := map[string]json.RawMessage{}
		for _, line := range aValue.FindAllStringSubmatch(lines, -1) {
			values[line[1]] = json.RawMessage(line[2])
		}
		return json.Marshal(values)
	}
	p := project{}
	for name, into := range map[string]any{"project": &p, "project.optional-dependencies": &p.Extras} {
		values, err := table(name)
		if err != nil {
			return project{}, err
		}
		if err := json.Unmarshal(values, into); err != nil {
			return project{}, err
		}
	}
	return p, nil
}

// metadata is the wheel's METADATA.
func (p project) metadata() ([]byte, error) {
	readme, err := sources.ReadFile("python/README.md")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nLicense: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: %s\n",
		p.Name, p.Version, p.Description, p.Python)
	for _, dependency := range p.Dependencies {
		fmt.Fprintf(&text, "Requires-Dist: %s\n", dependency)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.Extras)) {
		fmt.Fprintf(&text, "Provides-Extra: %s\n", extra)
		for _, dependency := range p.Extras[extra] {
			fmt.Fprintf(&text, "Requires-Dist: %s ; extra == '%s'\n", dependency, extra)
		}
	}
	fmt.Fprintf(&text, "Description-Content-Type: text/markdown\n\n%s", readme)
	return text.Bytes(), nil
}
