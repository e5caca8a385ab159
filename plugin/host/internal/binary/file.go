// Package binary deals with the executable file of a plugin: it pins a version of the
// file, and notices when another file takes its place.
package binary

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

var (
	// ErrReplaced means that the pinned version is gone, so nothing was started.
	ErrReplaced = errors.New("the pinned version is gone")
	// ErrChecksum means that the file is not the configured one, so nothing was
	// started.
	ErrChecksum = errors.New("the binary does not have the configured checksum")
)

// File is what the processes of one version of a plugin execute: the file as it was
// when it was pinned, even if the path now leads to another file. It stays open until
// every holder has closed it.
type File struct {
	Path string
	// Digest is the SHA-256 of the content in hex.
	Digest string
	// Script means that an interpreter executes the file. Interpreters need a path.
	Script bool
	file   *os.File

	mu      sync.Mutex
	holders int
	// seen describes the file as of the last comparison of its content.
	seen os.FileInfo
}

// Pin opens the file and computes its digest.
func Pin(path string) (*File, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, file: file, holders: 1}
	if f.seen, err = file.Stat(); err == nil {
		f.Digest, err = digest(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	var head [2]byte
	_, _ = file.ReadAt(head[:], 0)
	f.Script = string(head[:]) == "#!"
	return f, nil
}

// Info describes the file at the time when it was pinned or last compared.
func (f *File) Info() os.FileInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// Share returns the same file for one more holder.
func (f *File) Share() *File {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holders++
	return f
}

// Close closes the file once no holder is left.
func (f *File) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders--; f.holders == 0 {
		_ = f.file.Close()
	}
}

// ToExecute checks that the pinned version can still be executed, and has the checksum
// unless that is empty. It returns the open file to execute, or nil if the path still
// leads to it; then call CheckExecuted after the start. With a checksum it always
// returns the file, so that exactly the compared content is executed.
func (f *File) ToExecute(checksum string) (*os.File, error) {
	if err := f.verify(checksum); err != nil {
		return nil, err
	}
	switch {
	case checksum != "":
	case f.isAtPath():
		return nil, nil
	case f.Script:
		return nil, fmt.Errorf("%w: %s is no longer the script with the SHA-256 %s, and scripts are executed by their path", ErrReplaced, f.Path, f.Digest)
	}
	return f.file, nil
}

// CheckExecuted returns an error if the path leads to another file by now. Call it after
// the start of a process that executed the path: if the file was replaced just before,
// the process may be of another version.
func (f *File) CheckExecuted() error {
	if !f.isAtPath() {
		return fmt.Errorf("%s was replaced during the start", f.Path)
	}
	return nil
}

// isAtPath reports whether the path leads to the pinned version. The file may have been
// touched since; for a script, an equal file will do.
func (f *File) isAtPath() bool {
	found, err := os.Stat(f.Path)
	if err != nil {
		return false
	}
	known := f.Info()
	if Unchanged(found, known) {
		return true
	}
	if !f.Script && !os.SameFile(found, known) {
		return false
	}
	sum, err := Digest(f.Path)
	return err == nil && sum == f.Digest
}

func (f *File) verify(checksum string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.file.Stat()
	if err != nil {
		return err
	}
	if checksum == "" && Unchanged(now, f.seen) {
		return nil
	}
	sum, err := digest(f.file)
	switch {
	case err != nil:
		return err
	case checksum != "" && !strings.EqualFold(sum, checksum):
		return ErrChecksum
	case sum != f.Digest:
		return fmt.Errorf("%w: %s was overwritten in place, and had the SHA-256 %s before; to replace a file, rename the new one over it",
			ErrReplaced, f.Path, f.Digest)
	}
	f.seen = now
	return nil
}

// Unchanged reports whether a and b describe the same file, with the same permissions
// and, judging by its size and time, the same content.
func Unchanged(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) &&
		a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Digest returns the SHA-256 of a file's content in hex.
func Digest(path string) (string, error) {
	file, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	return digest(file)
}

// openRegular opens regular files only: opening a pipe could block, and reading a
// device might never end.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// digest does not move the file's offset, which all holders share.
func digest(file *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
