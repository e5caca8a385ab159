package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bug is a patch that puts one bug into the product. Its header says what is wrong, which
// invariant must be violated, how the checker says so, and with which flags of the runner.
type bug struct {
	name string
	path string
	by   string
	says string
	// flags choose the faults.
	flags []string
	// grace is how long nothing may move until the run gives up on jobs that are open: short
	// for a bug that strands jobs, which nothing can wait for; 0 for as long as in any other run.
	grace time.Duration
}

// bugs reads the patches of a folder.
func bugs(dir string) ([]bug, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	all := make([]bug, len(paths))
	for i, path := range paths {
		if all[i], err = read(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func read(path string) (bug, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return bug{}, err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return bug{}, err
	}
	b := bug{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: absolute}
	header, _, _ := strings.Cut(string(text), "diff --git ")
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Caught-By":
			b.by, b.says, _ = strings.Cut(value, " ")
		case "Flags":
			b.flags = strings.Fields(value)
		case "Grace":
			if b.grace, err = time.ParseDuration(value); err != nil {
				return bug{}, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if b.says == "" || len(b.flags) == 0 {
		return bug{}, fmt.Errorf("%s: its header must have Caught-By, with an invariant and words of its violations, and Flags", path)
	}
	return b, nil
}

// faults is the flags that choose the faults.
func (b bug) faults() string { return strings.Join(b.flags, " ") }

// files lists what the patch changes, by the names of git.
func (b bug) files() ([]string, error) {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	var changed []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "--- a/"); ok {
			changed = append(changed, strings.TrimSpace(name))
		}
	}
	return changed, nil
}

// apply puts the bug into a copy of the checkout, or takes it out again.
func (b bug) apply(ctx context.Context, dir string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"apply"}, arguments...), b.path)...)
	cmd.Dir = dir
	// A checkout above the copy must not matter.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", b.name, err, problems.String())
	}
	return nil
}
