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

// removePatience is how long the members of a group may take to die.
const removePatience = 2 * time.Second

// Tree is a cgroup that holds the groups of one host.
type Tree struct {
	Path string
	// Memory, CPU and PIDs say whether the kernel can bound these here.
	Memory, CPU, PIDs bool
}

// Open makes a tree of that name where the setting says: the path of a cgroup,
// Auto or None. Its error says why there can be none.
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

// Remove kills whatever is left in the tree and removes it.
func (t *Tree) Remove() error { return Remove(t.Path) }

// Remove kills everything in the cgroup and below, and removes it. One that is
// not there is no error.
func Remove(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	deadline := time.Now().Add(removePatience)
	for {
		_ = write(path, "cgroup.kill", "1")
		err := removeAll(path)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// removeAll removes the directories, which is all that can be removed in a
// cgroup's file system.
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
