package main

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

// credentials are what an operator logs in with. In a file they are a line
// "user:password", as curl -u takes it.
type credentials struct {
	user     string
	password secret
}

// maxCredentialsBytes bounds what is read of a file that may be anything: a
// line of as much as the API looks at.
const maxCredentialsBytes = guard.MaxLogin + len("\r\n")

// newPassword returns 128 random bits in groups of lower-case base32.
func newPassword() secret {
	letters := []byte(strings.ToLower(rand.Text()))
	var groups []string
	for group := range slices.Chunk(letters, 7) {
		groups = append(groups, string(group))
	}
	return secret(strings.Join(groups, "-"))
}

// notKeptError says why a file could not be made.
type notKeptError struct{ err error }

func (e *notKeptError) Error() string { return e.err.Error() }
func (e *notKeptError) Unwrap() error { return e.err }

// keep reads the credentials from the file, or makes the file of them and
// reports so. Of several processes that make it at once, one does, and all end
// with its credentials. It returns a notKeptError when there is no file and
// none can be made.
func (c *credentials) keep(path string) (made bool, err error) {
	// ENOTDIR: what should be a directory above it is a file.
	if err := c.read(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return false, err
	}
	err = c.write(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrExist):
		return false, c.read(path)
	}
	return false, &notKeptError{err}
}

// read refuses a file that others than its owner can read.
func (c *credentials) read(path string) error {
	// Without O_NONBLOCK a pipe would be waited for.
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
		return fmt.Errorf("%s can be read or written by others (mode %04o): chmod 600 it, or remove it to have others made",
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
		return fmt.Errorf("%s is not a line user:password; remove it to have one made", path)
	case user != c.user:
		return fmt.Errorf("%s is for another user than security.user; remove it to have one made", path)
	}
	c.password = secret(password)
	return nil
}

// write makes the file, whole or not at all, and returns fs.ErrExist when
// there is one.
func (c *credentials) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// O_EXCL, mode 0600.
	draft, err := os.CreateTemp(filepath.Dir(path), ".credentials-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.WriteString(c.user + ":" + c.password.reveal() + "\n")
	err = errors.Join(err, draft.Sync(), draft.Close())
	if err != nil {
		return err
	}
	// Unlike a rename, a link never takes the place of a file.
	return os.Link(draft.Name(), path)
}
