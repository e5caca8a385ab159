package binary

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const stable = time.Second

func TestAFileHasChangedWhenItDiffersAndIsStable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "binary")
	write := func(text string) os.FileInfo {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o700))
		require.NoError(t, os.Rename(path+".new", path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info
	}
	now := time.Now()
	file := NewWatch(path, write("one"))
	after := func(d time.Duration) bool {
		changed, err := file.Changed(now.Add(d), stable)
		require.NoError(t, err)
		return changed
	}

	require.False(t, after(time.Hour), "it is what is known")
	second := write("two")
	require.False(t, after(time.Hour), "it may stable be written")
	require.False(t, after(time.Hour+stable/2))
	write("three")
	require.False(t, after(time.Hour+stable), "it is yet another")
	require.True(t, after(time.Hour+2*stable))
	require.True(t, after(time.Hour+3*stable), "nobody has dealt with it")

	file.Know(file.Seen())
	require.False(t, after(2*time.Hour))
	require.NoError(t, os.Remove(path))
	require.False(t, after(3*time.Hour), "it is missing")
	require.False(t, after(3*time.Hour+stable/2))
	third := write("one")
	require.NotEqual(t, second, third)
	require.False(t, after(5*time.Hour))
	require.True(t, after(5*time.Hour+stable))

	file.Know(file.Seen())
	require.NoError(t, os.Chtimes(path, now, now.Add(time.Hour)))
	require.False(t, after(6*time.Hour))
	require.True(t, after(6*time.Hour+stable), "whoever touches it may have written to it")
}

func TestAFileThatStaysMissingIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "binary")
	file, now := NewWatch(path, nil), time.Now()
	for _, look := range []struct {
		after   time.Duration
		missing bool
	}{{0, false}, {stable / 2, false}, {stable, true}, {2 * stable, true}} {
		changed, err := file.Changed(now.Add(look.after), stable)
		require.False(t, changed)
		require.Equal(t, look.missing, os.IsNotExist(err), look.after)
	}
	require.NoError(t, os.WriteFile(path, nil, 0o700))
	_, err := file.Changed(now.Add(3*stable), stable)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	_, err = file.Changed(now.Add(4*stable), stable)
	require.NoError(t, err, "it may be on its way again")
}
