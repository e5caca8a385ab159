package cgroup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Meter reads the same files of a group again and again. It keeps them open, because opening
// one costs several times as much as reading it. One goroutine may use it; it must be closed.
type Meter struct {
	threads, refused kept
	buffer           [4096]byte
}

// Meter returns a meter of the group.
func (g *Group) Meter() *Meter {
	return &Meter{
		threads: kept{path: filepath.Join(g.path, "cgroup.threads")},
		refused: kept{path: filepath.Join(g.path, "pids.events")},
	}
}

// Tasks counts the processes and threads in the group.
func (m *Meter) Tasks() (uint64, error) {
	tasks := uint64(0)
	for at := int64(0); ; {
		n, err := m.threads.readAt(m.buffer[:], at)
		tasks += uint64(bytes.Count(m.buffer[:n], []byte{'\n'}))
		if err != nil {
			return tasks, ended(err)
		}
		at += int64(n)
	}
}

// Refused returns how many forks the kernel has refused because of the limit; 0 if the tree
// lacks the controller.
func (m *Meter) Refused() uint64 {
	n, _ := m.refused.readAt(m.buffer[:], 0)
	for line := range bytes.Lines(m.buffer[:n]) {
		if times, ok := bytes.CutPrefix(line, []byte("max ")); ok {
			refused, _ := strconv.ParseUint(string(bytes.TrimSpace(times)), 10, 64)
			return refused
		}
	}
	return 0
}

// Close closes the files.
func (m *Meter) Close() {
	m.threads.close()
	m.refused.close()
}

// kept is a file of the kernel that stays open. Reading at its beginning yields what is true
// by then.
type kept struct {
	path string
	file *os.File
}

// readAt fills the buffer, or returns io.EOF with what is left. After any other error, such as
// that the group is gone, the file is opened again.
func (k *kept) readAt(buffer []byte, at int64) (int, error) {
	if k.file == nil {
		file, err := os.Open(k.path)
		if err != nil {
			return 0, err
		}
		k.file = file
	}
	n, err := k.file.ReadAt(buffer, at)
	if ended(err) != nil {
		k.close()
	}
	return n, err
}

func (k *kept) close() {
	if k.file != nil {
		_ = k.file.Close()
		k.file = nil
	}
}

// ended is nil for the end of a file.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
