package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Settings for Open instead of a path.
const (
	// Auto uses the cgroup of this process.
	Auto = "auto"
	// None makes no cgroups.
	None = "none"
)

// leafName is the group that this process moves into. Except for the root, a cgroup
// that has processes cannot bound its children.
const leafName = "orchestrator"

// controllers are the ones that we use. A test replaces them.
var controllers = []string{"memory", "cpu", "pids"}

// system says where to look. Tests use their own.
type system struct {
	// proc is /proc/self. systemd is a file that exists if systemd is the init.
	proc, systemd string
	pid           int
}

func thisSystem() system {
	return system{proc: "/proc/self", systemd: "/run/systemd/system", pid: os.Getpid()}
}

// find returns a directory in which groups can be made, and enables as many controllers
// for them as possible. The error says why there is no such directory.
func (s system) find(setting string) (string, error) {
	if filepath.IsAbs(setting) {
		if _, err := os.Stat(filepath.Join(setting, "cgroup.procs")); err != nil {
			return "", fmt.Errorf("%s is not a cgroup: %w", setting, err)
		}
		return setting, enable(setting)
	}
	own, err := s.own()
	if err != nil {
		return "", err
	}
	parent := own
	if filepath.Base(own) == leafName {
		// The parent process has moved there, or systemd started this process there
		// (DelegateSubgroup).
		parent = filepath.Dir(own)
	}
	if _, err := os.Stat(s.systemd); err == nil && !delegated(parent) {
		return "", fmt.Errorf("systemd has not delegated %s (Delegate=yes)", parent)
	}
	if unix.Access(parent, unix.W_OK) != nil || unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK) != nil {
		return "", fmt.Errorf("%s is not writable", parent)
	}
	if parent == own && !isRoot(own) && len(missing(own)) > 0 {
		s.makeRoom(own)
	}
	// A group is useful even without controllers.
	_ = enable(parent)
	return parent, nil
}

// own is the directory of the cgroup that this process is in.
func (s system) own() (string, error) {
	mounts, err := os.ReadFile(filepath.Join(s.proc, "mountinfo"))
	if err != nil {
		return "", err
	}
	groups, err := os.ReadFile(filepath.Join(s.proc, "cgroup"))
	if err != nil {
		return "", err
	}
	path := ""
	for line := range strings.Lines(string(groups)) {
		if found, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = found
		}
	}
	if path == "" {
		return "", errors.New("this process is in no cgroup v2")
	}
	if strings.Contains(path, "/..") {
		return "", fmt.Errorf("the cgroup %s of this process is not in its namespace", path)
	}
	for line := range strings.Lines(string(mounts)) {
		// 36 35 98:0 /root /mount/point options - type source options
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup2 ") || len(fields) < 5 {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		return filepath.Join(fields[4], below), nil
	}
	return "", errors.New("no cgroup v2 is mounted")
}

// makeRoom moves this process into a leaf of its cgroup, if it is alone there. Enabling
// the controllers shows whether that worked.
func (s system) makeRoom(own string) {
	procs, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil || string(bytes.TrimSpace(procs)) != strconv.Itoa(s.pid) {
		return
	}
	leaf := filepath.Join(own, leafName)
	if err := makeDir(leaf, 0o755); err != nil && !os.IsExist(err) {
		return
	}
	if write(leaf, "cgroup.procs", strconv.Itoa(s.pid)) != nil {
		return
	}
	if enable(own) != nil {
		_ = write(own, "cgroup.procs", strconv.Itoa(s.pid))
		_ = os.Remove(leaf)
	}
}

// enable enables our controllers for the children of a cgroup, as far as it has them.
func enable(parent string) error {
	var failed error
	// Write one at a time: the kernel accepts a whole line or nothing.
	for _, name := range missing(parent) {
		failed = errors.Join(failed, write(parent, "cgroup.subtree_control", "+"+name))
	}
	return failed
}

// missing are our controllers that a cgroup has and its children do not have.
func missing(parent string) []string {
	enabled := words(parent, "cgroup.subtree_control")
	return slices.DeleteFunc(available(parent), func(name string) bool { return slices.Contains(enabled, name) })
}

// available are our controllers that a cgroup has.
func available(group string) []string {
	have := words(group, "cgroup.controllers")
	return slices.DeleteFunc(slices.Clone(controllers), func(name string) bool { return !slices.Contains(have, name) })
}

// isRoot reports whether the group is the root, which may have processes and children.
func isRoot(group string) bool {
	_, err := os.Stat(filepath.Join(group, "cgroup.type"))
	return os.IsNotExist(err)
}

// delegated reads the mark that systemd puts on delegated cgroups.
func delegated(group string) bool {
	value := make([]byte, 1)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(group, name, value); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

func words(group, file string) []string {
	text, _ := os.ReadFile(filepath.Join(group, file))
	return strings.Fields(string(text))
}

// writeFile and makeDir act on the kernel's file system; tests replace them.
var (
	writeFile = os.WriteFile
	makeDir   = os.Mkdir
)

func write(group, file, text string) error {
	return writeFile(filepath.Join(group, file), []byte(text), 0o644)
}
