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
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed python/src/holdfast/*.py python/src/holdfast/*.pyi python/src/holdfast/py.typed
//go:embed node/package.json node/index.js node/index.d.ts node/lib/* node/README.md node/LICENSE
var sources embed.FS

var (
	//go:embed python/pyproject.toml
	pyproject string
	//go:embed python/README.md
	pythonReadme string
	//go:embed python/LICENSE
	pythonLicense []byte
	//go:embed node/package.json
	nodeManifest []byte
)

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

	files, err := filesBelow("python/src/")
	if err != nil {
		return Package{}, err
	}
	files = append(files,
		file{info + "LICENSE", pythonLicense},
		file{info + "METADATA", project.metadata()},
		file{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: holdfast\nRoot-Is-Purelib: true\nTag: py3-none-any\n")})
	var record bytes.Buffer
	for _, f := range files {
		digest := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(digest[:]), len(f.content))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)

	var wheel bytes.Buffer
	archive := zip.NewWriter(&wheel)
	for _, f := range append(files, file{info + "RECORD", record.Bytes()}) {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: packedAt}
		header.SetMode(0o644)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return Package{}, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return Package{}, err
		}
	}
	if err := archive.Close(); err != nil {
		return Package{}, err
	}
	return Package{Name: stem + "-py3-none-any.whl", Content: wheel.Bytes()}, nil
}

// Tarball is the SDK for Node.js: what `npm pack` makes of node/.
func Tarball() (Package, error) {
	var manifest struct{ Name, Version string }
	if err := json.Unmarshal(nodeManifest, &manifest); err != nil {
		return Package{}, fmt.Errorf("node/package.json: %w", err)
	}
	files, err := filesBelow("node/")
	if err != nil {
		return Package{}, err
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{Name: "package/" + f.name, Mode: 0o644, Size: int64(len(f.content)), ModTime: packedAt}
		if err := archive.WriteHeader(header); err != nil {
			return Package{}, err
		}
		if _, err := archive.Write(f.content); err != nil {
			return Package{}, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return Package{}, err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(manifest.Name, "@"), "/", "-")
	return Package{Name: name + "-" + manifest.Version + ".tgz", Content: packed.Bytes()}, nil
}

// file is part of a package.
type file struct {
	name    string
	content []byte
}

// filesBelow returns the files below the directory, with names relative to it. The
// directory's name must end in a slash.
func filesBelow(dir string) (files []file, err error) {
	err = fs.WalkDir(sources, strings.TrimSuffix(dir, "/"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := sources.ReadFile(path)
		files = append(files, file{strings.TrimPrefix(path, dir), content})
		return err
	})
	return files, err
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
	p := project{}
	for name, into := range map[string]any{"project": &p, "project.optional-dependencies": &p.Extras} {
		_, table, _ := strings.Cut(pyproject, "\n["+name+"]\n")
		table, _, _ = strings.Cut(table, "\n[")
		values := map[string]json.RawMessage{}
		for _, line := range aValue.FindAllStringSubmatch(table, -1) {
			values[line[1]] = json.RawMessage(line[2])
		}
		text, err := json.Marshal(values)
		if err != nil {
			return project{}, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return project{}, err
		}
	}
	return p, nil
}

// metadata is the wheel's METADATA.
func (p project) metadata() []byte {
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
	fmt.Fprintf(&text, "Description-Content-Type: text/markdown\n\n%s", pythonReadme)
	return text.Bytes()
}
