package osprocess

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func checksumOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func TestInvalidIdentitiesAreRefused(t *testing.T) {
	for _, c := range []struct{ user, group, want string }{
		{"no-such-user", "", "user no-such-user is not known on this machine"},
		{"", "wheel", "group wheel: a group needs a user"},
		{"0", "no-such-group", "group no-such-group is not known on this machine"},
		{"1234567", "", "user 1234567 has no entry on this machine, so set a group"},
	} {
		_, err := LookUp(c.user, c.group)
		require.EqualError(t, err, c.want)
	}
	if os.Geteuid() != 0 {
		_, err := LookUp("0", "0")
		require.ErrorContains(t, err, "user 0: only root may run a plugin as another user, and this is user")
	}
	ourselves, err := LookUp(strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid()))
	require.NoError(t, err)
	require.Nil(t, ourselves)
	nobody, err := LookUp("", "")
	require.NoError(t, err)
	require.Nil(t, nobody)
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a process as somebody else")
	}
}

// passable is a directory that everybody may go through.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hfid")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o711))
	return dir
}

func TestAProcessRunsAsItsUserAndMakesItsSocket(t *testing.T) {
	asRoot(t)
	identity, err := LookUp("1234567", "7654321")
	require.NoError(t, err)
	require.Equal(t, &Identity{UID: 1234567, GID: 7654321}, identity)

	home, err := MakeHome(passable(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Remove()) }()
	dir, err := os.MkdirTemp(home.Path, "plugin-dir")
	require.NoError(t, err)
	p := prepared(t, Spec{Args: []string{"-c", `id -u; id -g; id -G; touch "$` + socketDirVariable + `/s" && echo made`}, Identity: identity})
	p.Provision([]string{socketDirVariable + "=" + dir}, dir)
	require.ErrorContains(t, p.Start(t.Context()), "it cannot make its socket: user 1234567 may not enter "+home.Path)
	require.NoError(t, home.Open())

	require.NoError(t, p.Start(t.Context()))
	require.Equal(t, Death{}, death(t, p))
	require.True(t, p.Await(time.Second))
	require.Equal(t, "1234567\n7654321\n7654321\nmade", p.Output().Excerpt())
}

func TestABinaryThatTheUserCannotExecuteIsNamed(t *testing.T) {
	asRoot(t)
	dir := passable(t)
	who := &Identity{UID: 1234567, GID: 1234567}
	start := func(path, checksum string) error {
		p := prepared(t, Spec{Binary: pin(t, path), Identity: who, Checksum: checksum})
		p.Provision(nil, dir)
		return p.Start(t.Context())
	}
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("#!/bin/sh\nexit 3\n"), 0o711))
	require.ErrorContains(t, start(secret, ""), "user 1234567 may not read and execute "+secret)
	require.NoError(t, os.Chmod(secret, 0o700))
	require.ErrorContains(t, start(secret, checksumOf(t, secret)), "user 1234567 may not read and execute "+secret)
	require.NoError(t, os.Chmod(secret, 0o755))
	require.NoError(t, start(secret, checksumOf(t, secret)))

	hidden := filepath.Join(dir, "hidden")
	require.NoError(t, os.Mkdir(hidden, 0o700))
	below := filepath.Join(hidden, "binary")
	require.NoError(t, os.WriteFile(below, []byte("abc"), 0o755))
	require.ErrorContains(t, start(below, ""), "user 1234567 may not enter "+hidden)
}
