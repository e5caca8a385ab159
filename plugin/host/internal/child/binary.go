package child

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// ErrReplaced says that nothing was started, for what was pinned is gone.
var ErrReplaced = errors.New("the pinned version is gone")

// Binary is what the processes of one version of a plugin execute: the file as it
// was when it was pinned, whatever stands under its path since. It is held open
// until everybody who shares it has closed it.
type Binary struct {
	Path string
	// Digest is the SHA-256 of the content in hex.
	Digest string
	// script says that the file is for an interpreter, which is given a path.
	script bool
	file   *os.File

	mu      sync.Mutex
	holders int
	// seen is what the file was like when its content was last compared.
	seen os.FileInfo
}

// Pin opens the file and takes its digest.
func Pin(path string) (*Binary, error) {
	file, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	b := &Binary{Path: path, file: file, holders: 1}
	if b.seen, err = file.Stat(); err == nil {
		b.Digest, err = digest(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	var head [2]byte
	_, _ = file.ReadAt(head[:], 0)
	b.script = string(head[:]) == "#!"
	return b, nil
}

// Info is the file as it was when it was pinned or last compared.
func (b *Binary) Info() os.FileInfo {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

// Share returns the same binary for one holder more.
func (b *Binary) Share() *Binary {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders++
	return b
}

// Close gives up the file, when nobody else holds it.
func (b *Binary) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holders--; b.holders == 0 {
		_ = b.file.Close()
	}
}

// Unchanged reports whether two looks at a path saw the same file with the same
// permissions and, as far as can be told without reading it, the same content.
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

// openRegular opens a regular file, and nothing else: a pipe would be waited for,
// and a device read for ever.
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

// digest reads without moving the file's offset, which holders share.
func digest(file *os.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, 1<<62)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// command makes cmd execute the binary, after a look at its content.
func (b *Binary) command(cmd *exec.Cmd, checksum string) error {
	byPath, err := b.stands(checksum)
	if err == nil && !byPath {
		execOpen(cmd, b.file)
	}
	return err
}

// Stands says why the binary cannot be executed any more; nil when it can be.
func (b *Binary) Stands() error {
	_, err := b.stands("")
	return err
}

// stands reports whether the binary is to be executed by its path, after a look at
// its content: always when it has a checksum to have, else when the file has been
// written to.
func (b *Binary) stands(checksum string) (byPath bool, err error) {
	if err := b.verify(checksum); err != nil {
		return false, err
	}
	found, err := os.Stat(b.Path)
	inPlace := err == nil && Unchanged(found, b.Info())
	switch {
	case checksum != "":
		// What was compared is what is executed.
	case inPlace:
		return true, nil
	case b.script:
		if sum, err := Digest(b.Path); err == nil && sum == b.Digest {
			return true, nil // it was put back
		}
		return false, fmt.Errorf("%w: %s is no longer the script with the SHA-256 %s, and scripts are executed by their path", ErrReplaced, b.Path, b.Digest)
	}
	return false, nil
}

func (b *Binary) verify(checksum string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, err := b.file.Stat()
	if err != nil {
		return err
	}
	if checksum == "" && Unchanged(now, b.seen) {
		return nil
	}
	sum, err := digest(b.file)
	switch {
	case err != nil:
		return err
	case checksum != "" && !strings.EqualFold(sum, checksum):
		return ErrChecksum
	case sum != b.Digest:
		return fmt.Errorf("%w: %s was written over in place, and had the SHA-256 %s before; replace files by renaming others over them",
			ErrReplaced, b.Path, b.Digest)
	}
	b.seen = now
	return nil
}
