//go:build linux

package database

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// diskSize is how large the file system of a server may be; empty if this machine has too little
// memory for two. The short runs write some hundred megabytes.
func diskSize() string {
	const gibi = 1 << 30
	switch free := freeMemory(); {
	case free > 12*gibi:
		return "3g"
	case free > 5*gibi:
		return "1536m"
	}
	return ""
}

// freeMemory is how many bytes may be used: those of the machine, or of the container.
func freeMemory() int64 {
	free := int64(math.MaxInt64)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); fields[0] == "MemAvailable:" {
				if kibi, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					free = kibi << 10
				}
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			free = min(free, most)
		}
	}
	return free
}

// Disk reports whether the server has a file system of its own.
func (s *Server) Disk() bool {
	home, err := os.Stat(s.home)
	if err != nil {
		return false
	}
	above, err := os.Stat(filepath.Dir(s.home))
	if err != nil {
		return false
	}
	a, ok1 := home.Sys().(*syscall.Stat_t)
	b, ok2 := above.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && a.Dev != b.Dev
}

// FillDisk fills the file system of the server, and returns the file to remove.
func (s *Server) FillDisk() (ballast string, err error) {
	if !s.Disk() {
		return "", errors.New("the server has no file system of its own")
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(s.home, &room); err != nil {
		return "", err
	}
	ballast = filepath.Join(s.home, "ballast")
	file, err := os.Create(ballast)
	if err != nil {
		return "", err
	}
	// Others write, too: what has room now may have none at once.
	end := int64(0)
	for size := int64(room.Bavail) * room.Bsize; size >= 4096; size /= 2 { //nolint:gosec // less than an exabyte
		if syscall.Fallocate(int(file.Fd()), 0, end, size) == nil {
			end += size
		}
	}
	if end == 0 {
		err = errors.New("nothing could be written")
	}
	return ballast, errors.Join(err, file.Close())
}
