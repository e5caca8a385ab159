//go:build linux

package database

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

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
