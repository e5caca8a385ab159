// Package sdktest installs the packages of the SDKs for tests, without a registry.
package sdktest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-jobs/holdfast/sdk"
)

// Python makes a virtual environment in the directory, with the SDK installed, and
// returns its interpreter. It fails where no Python 3.11 has grpcio and protobuf.
func Python(ctx context.Context, dir string) (interpreter string, err error) {
	base, err := FindPython(ctx)
	if err != nil {
		return "", err
	}
	venv := exec.CommandContext(ctx, base, "-m", "venv", "--without-pip", "--system-site-packages", dir)
	if said, err := venv.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", venv, err, said)
	}
	interpreter = filepath.Join(dir, "bin/python3")
	packages, err := exec.CommandContext(ctx, interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").Output()
	if err != nil {
		return "", err
	}
	wheel, err := sdk.Wheel()
	if err != nil {
		return "", err
	}
	archive, err := zip.NewReader(bytes.NewReader(wheel.Content), int64(len(wheel.Content)))
	if err != nil {
		return "", err
	}
	return interpreter, os.CopyFS(strings.TrimSpace(string(packages)), archive)
}

// FindPython returns the first interpreter that has what the SDK needs. Often that
// is the system's, and another one comes first in the PATH.
func FindPython(ctx context.Context) (string, error) {
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
	return "", errors.New("there is no Python 3.11 with grpcio and protobuf (Debian: python3-grpcio, python3-protobuf)")
}

// Node makes the directory an npm project with the SDK installed, and returns the
// interpreter. What else the project needs, the SDK's dependencies among it, is
// linked from another project's node_modules, where npm has installed it.
func Node(ctx context.Context, dir, modules string) (interpreter string, err error) {
	interpreter, err = exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("there is no Node.js: %w", err)
	}
	version, err := exec.CommandContext(ctx, interpreter, "-p", "+process.versions.node.split('.')[0] >= 18").Output()
	if err != nil || strings.TrimSpace(string(version)) != "true" {
		return "", fmt.Errorf("%s is older than Node.js 18", interpreter)
	}
	installed, err := os.ReadDir(modules)
	if err != nil {
		return "", fmt.Errorf("the packages that the SDK needs are not installed (npm ci in %s): %w", filepath.Dir(modules), err)
	}
	modules, err = filepath.Abs(modules)
	if err != nil {
		return "", err
	}
	into := filepath.Join(dir, "node_modules")
	if err := os.Mkdir(into, 0o755); err != nil {
		return "", err
	}
	for _, entry := range installed {
		if entry.Name() == "@holdfast-jobs" {
			continue
		}
		if err := os.Symlink(filepath.Join(modules, entry.Name()), filepath.Join(into, entry.Name())); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o600); err != nil {
		return "", err
	}
	return interpreter, unpack(filepath.Join(into, "@holdfast-jobs/holdfast"))
}

// unpack writes what the SDK's tarball holds to the directory.
func unpack(dir string) error {
	tarball, err := sdk.Tarball()
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(tarball.Content))
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, strings.TrimPrefix(header.Name, "package/"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
}
