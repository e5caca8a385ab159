package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// Credentials are an operator's login. A file holds them as a line "user:password",
// as curl -u takes it.
type Credentials struct {
	User     string
	Password Secret
}

// maxCredentialsBytes bounds the read of a file that may be anything. The API
// accepts no longer line.
const maxCredentialsBytes = guard.MaxLogin + len("\r\n")

// NewPassword returns 128 random bits in groups of lower-case base32.
func NewPassword() Secret {
	letters := []byte(strings.ToLower(rand.Text()))
	var groups []string
	for group := range slices.Chunk(letters, 7) {
		groups = append(groups, string(group))
	}
	return Secret(strings.Join(groups, "-"))
}

// NotKeptError says why the credentials file could not be created.
type NotKeptError struct{ Err error }

func (e *NotKeptError) Error() string { return e.Err.Error() }
func (e *NotKeptError) Unwrap() error { return e.Err }

// Keep reads the credentials from the file. If there is none, it creates the file
// from them and reports that it did. Of several processes that do so at once one
// wins, and all end up with its credentials. The error is a NotKeptError when there
// is no file and none can be created.
func (c *Credentials) Keep(path string) (made bool, err error) {
	// ENOTDIR: a parent of the path is a file.
	if err := c.Read(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return false, err
	}
	err = c.write(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, c.Read(path)
	}
	return false, &NotKeptError{err}
}

// Read reads the credentials, and rejects a file that others than its owner can
// access.
func (c *Credentials) Read(path string) error {
	// Without O_NONBLOCK, opening a pipe would block.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if open := info.Mode().Perm() & 0o077; open != 0 {
		return fmt.Errorf("%s can be read or written by others (mode %04o): chmod 600 it, or remove it to get new credentials",
			path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(maxCredentialsBytes)+1))
	if err != nil {
		return err
	}
	if len(text) > maxCredentialsBytes {
		return fmt.Errorf("%s is longer than a line user:password may be, %d bytes", path, guard.MaxLogin)
	}
	user, password, _ := strings.Cut(strings.TrimRight(string(text), "\r\n"), ":")
	switch {
	case password == "" || strings.Contains(password, "\n"):
		return fmt.Errorf("%s is not a line user:password; remove it to get a new one", path)
	case user != c.User:
		return fmt.Errorf("%s is for another user than security.user; remove it to get a new one", path)
	}
	c.Password = Secret(password)
	return nil
}

// write creates the whole file or nothing. It returns fs.ErrExist when there is
// one.
func (c *Credentials) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// O_EXCL, mode 0600.
	draft, err := os.CreateTemp(filepath.Dir(path), ".credentials-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.WriteString(c.User + ":" + c.Password.Reveal() + "\n")
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err != nil {
		return err
	}
	// Unlike a rename, a link never replaces a file.
	return os.Link(draft.Name(), path)
}
