package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// removeTimeout is how long the members of a group may take to die.
const removeTimeout = 2 * time.Second

// Tree is a cgroup that holds the groups of one host.
type Tree struct {
	Path string
	// Memory, CPU and PIDs say which controllers the groups have.
	Memory, CPU, PIDs bool
}

// Open makes a tree of that name. The setting is the path of a cgroup, Auto, or None. The
// error says why there is no tree.
func Open(setting, name string) (*Tree, error) {
	return thisSystem().open(setting, name)
}

func (s system) open(setting, name string) (*Tree, error) {
	if setting == None {
		return nil, errors.New("cgroups are turned off")
	}
	if setting != Auto && !filepath.IsAbs(setting) {
		return nil, fmt.Errorf("%q is neither %s nor %s nor the absolute path of a cgroup", setting, Auto, None)
	}
	parent, err := s.find(setting)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(parent, name)
	if err := makeDir(path, 0o755); err != nil {
		return nil, err
	}
	_ = enable(path)
	enabled := words(path, "cgroup.subtree_control")
	has := func(name string) bool { return slices.Contains(enabled, name) }
	return &Tree{Path: path, Memory: has("memory"), CPU: has("cpu"), PIDs: has("pids")}, nil
}

// Remove kills all members and removes the tree.
func (t *Tree) Remove() error { return Remove(t.Path) }

// Remove kills all members of the cgroup and of the cgroups below it, and removes it.
// It returns nil if the cgroup is missing.
func Remove(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	deadline := time.Now().Add(removeTimeout)
	for {
		_ = write(path, "cgroup.kill", "1")
		err := removeAll(path)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeAll removes the directories. Files in a cgroup's file system cannot be removed.
func removeAll(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeAll(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
