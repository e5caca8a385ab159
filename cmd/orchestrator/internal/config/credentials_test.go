package config

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

func TestPasswordsAreLongAndUnique(t *testing.T) {
	seen := map[Secret]bool{}
	for range 100 {
		password := NewPassword()
		require.Regexp(t, `^([a-z2-7]{7}-){3}[a-z2-7]{5}$`, password.Reveal(), "26 letters of 5 bits")
		require.False(t, seen[password])
		seen[password] = true
	}
}

func TestOnlyTheirOwnerCanReadCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "credentials")
	first := Credentials{User: "admin", Password: "one:two"}
	made, err := first.Keep(path)
	require.NoError(t, err)
	require.True(t, made)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "admin:one:two\n", string(text), "as curl -u takes it")

	second := Credentials{User: "admin", Password: "three"}
	made, err = second.Keep(path)
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, first, second)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no draft is left")
}

func TestConcurrentStartsShareTheSameCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	const racers = 32
	var ready, done sync.WaitGroup
	results, makers := make([]Credentials, racers), make([]bool, racers)
	start := make(chan struct{})
	for i := range racers {
		ready.Add(1)
		done.Go(func() {
			results[i] = Credentials{User: "admin", Password: NewPassword()}
			ready.Done()
			<-start
			made, err := results[i].Keep(path)
			makers[i] = made
			if err != nil {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	made := 0
	for i := range racers {
		require.Equal(t, results[0], results[i])
		if makers[i] {
			made++
		}
	}
	require.Equal(t, 1, made)
}

func TestErrorsAboutUnsafeCredentialsNameTheRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable by the group": {"admin:canary\n", 0o640, "mode 0640): chmod 600 it, or remove it"},
		"readable by all":       {"admin:canary\n", 0o604, "chmod 600"},
		"writable by others":    {"admin:canary\n", 0o602, "chmod 600"},
		"empty":                 {"", 0o600, "remove it"},
		"no password":           {"admin:\n", 0o600, "remove it"},
		"no user":               {"canary\n", 0o600, "remove it"},
		"two lines":             {"admin:canary\nroot:canary\n", 0o600, "remove it"},
		"of another user":       {"root:canary\n", 0o600, "another user than security.user; remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "credentials")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			require.NoError(t, os.Chmod(path, c.mode))
			asked := Credentials{User: "admin", Password: "own"}
			made, err := asked.Keep(path)
			require.False(t, made)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "canary")
			require.Equal(t, Secret("own"), asked.Password)
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.text, string(kept), "the file stays as it was")
		})
	}
	asked := Credentials{User: "admin", Password: "own"}
	_, err := asked.Keep(t.TempDir())
	require.ErrorContains(t, err, "not a regular file")
}

func TestCredentialsThatCannotBeStoredAreADistinctError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	asked := Credentials{User: "admin", Password: "own"}
	made, err := asked.Keep(filepath.Join(file, "credentials"))
	require.False(t, made)
	var unkept *NotKeptError
	require.ErrorAs(t, err, &unkept)
	require.Equal(t, Secret("own"), asked.Password)
}

func TestOtherFilesAreNotTakenForCredentials(t *testing.T) {
	directory := t.TempDir()
	pipe, long := filepath.Join(directory, "pipe"), filepath.Join(directory, "long")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(long, []byte("admin:"+strings.Repeat("x", guard.MaxLogin)), 0o600))
	for path, want := range map[string]string{pipe: "is not a regular file", long: "is longer than a line user:password may be"} {
		c := Credentials{User: "admin", Password: "p"}
		_, err := c.Keep(path)
		require.ErrorContains(t, err, want)
	}
}
