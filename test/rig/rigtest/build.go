package rigtest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Build builds programs into the directory, which it creates and returns as an absolute
// path. The arguments are those of go build: flags, then packages. The programs of cmd, which
// most tests need, are linked once, and tests of several packages get the same file.
func Build(dir string, args ...string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var flags, own, common []string
	for _, arg := range args {
		path, err := filepath.Abs(arg)
		switch {
		case err != nil:
			return "", err
		case strings.HasPrefix(arg, "-"):
			flags = append(flags, arg)
		case filepath.Base(filepath.Dir(path)) == "cmd":
			common = append(common, path)
		default:
			own = append(own, path)
		}
	}
	if err := compile(dir, flags, own); err != nil {
		return "", err
	}
	return dir, share(filepath.Join(filepath.Dir(dir), "shared"+strings.Join(flags, "")), dir, flags, common)
}

// share builds programs in the shared directory, where go build leaves alone what is up to
// date, and links them into dir. Other processes wait meanwhile.
func share(shared, dir string, flags, packages []string) error {
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(shared)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", shared, err)
	}
	if err := compile(shared, flags, packages); err != nil {
		return err
	}
	for _, path := range packages {
		name := filepath.Base(path)
		kept, err := keep(filepath.Join(shared, name))
		if err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := os.Link(kept, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// keep returns the path of a copy of the program that stays as it is: go build touches what
// it finds up to date, which would change the file that other tests execute.
func keep(program string) (string, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	kept := fmt.Sprintf("%s-%x", program, sha256.Sum256(text))
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	former, err := filepath.Glob(program + "-*")
	if err != nil {
		return "", err
	}
	for _, path := range former {
		if err := os.Remove(path); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(kept+".new", text, 0o755); err != nil { //nolint:gosec // a program
		return "", err
	}
	return kept, os.Rename(kept+".new", kept)
}

func compile(dir string, flags, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	// Without symbols, a program is a quarter smaller to link, copy and hash.
	args := slices.Concat([]string{"build", "-ldflags=-s -w", "-o", dir + "/"}, flags, packages)
	build := exec.Command("go", args...) //nolint:noctx // bounded by the test's own time
	build.Dir = packages[0]              // a test in another module builds what is in this one
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}
