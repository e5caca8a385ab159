package binary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The digests of "abc" and of nothing.
const (
	digestOfABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func pinned(t *testing.T, text string) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	b, err := Pin(path)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func replace(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o700))
	require.NoError(t, os.Rename(path+".new", path))
}

// executed is the content of the file that would be executed.
func executed(t *testing.T, f *File, checksum string) (content string, err error) {
	t.Helper()
	open, err := f.ToExecute(checksum)
	if err != nil {
		return "", err
	}
	if open == nil {
		text, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		return string(text), nil
	}
	text := make([]byte, 100)
	n, _ := open.ReadAt(text, 0)
	return string(text[:n]), nil
}

func TestAPinnedBinaryIsWhatIsExecuted(t *testing.T) {
	b := pinned(t, "abc")
	require.Equal(t, digestOfABC, b.Digest)
	for _, text := range []string{"", "abcd"} {
		replace(t, b.Path, text)
		content, err := executed(t, b, "")
		require.NoError(t, err)
		require.Equal(t, "abc", content)
	}
	require.NoError(t, os.Remove(b.Path))
	content, err := executed(t, b, digestOfABC)
	require.NoError(t, err)
	require.Equal(t, "abc", content)
}

func TestABinaryThatIsOverwrittenInPlaceIsNotExecuted(t *testing.T) {
	b := pinned(t, "abc")
	require.NoError(t, os.WriteFile(b.Path, []byte("abcd"), 0o700))
	_, err := executed(t, b, "")
	require.ErrorIs(t, err, ErrReplaced)
	require.ErrorContains(t, err, "was overwritten in place, and had the SHA-256 "+digestOfABC)
	require.NoError(t, os.WriteFile(b.Path, []byte("abc"), 0o700))
	content, err := executed(t, b, "")
	require.NoError(t, err)
	require.Equal(t, "abc", content)
}

// A build that finds a program up to date may touch it, as go build does.
func TestABinaryThatWasTouchedIsTheSame(t *testing.T) {
	b := pinned(t, "abc")
	require.NoError(t, os.Chtimes(b.Path, time.Unix(1, 0), time.Unix(1, 0)))
	require.NoError(t, b.CheckExecuted())
	open, err := b.ToExecute("")
	require.NoError(t, err)
	require.Nil(t, open, "the path still leads to it")
	replace(t, b.Path, "abc")
	require.ErrorContains(t, b.CheckExecuted(), "was replaced during the start")
}

func TestAnUnchangedScriptIsExecutedByItsPath(t *testing.T) {
	const script = "#!/bin/sh\n"
	b := pinned(t, script)
	replace(t, b.Path, "#!/bin/true\n")
	_, err := executed(t, b, "")
	require.ErrorIs(t, err, ErrReplaced)
	require.ErrorContains(t, err, "scripts are executed by their path")
	replace(t, b.Path, script)
	content, err := executed(t, b, "")
	require.NoError(t, err)
	require.Equal(t, script, content)
}

func TestABinaryIsComparedByItsContent(t *testing.T) {
	b := pinned(t, "abc")
	info := b.Info()
	_, err := executed(t, b, strings.ToUpper(digestOfABC))
	require.NoError(t, err)
	_, err = executed(t, b, emptyDigest)
	require.ErrorIs(t, err, ErrChecksum)
	// The content is compared even if everything else is as before.
	require.NoError(t, os.WriteFile(b.Path, []byte("abd"), 0o700))
	require.NoError(t, os.Chtimes(b.Path, info.ModTime(), info.ModTime()))
	_, err = executed(t, b, digestOfABC)
	require.ErrorIs(t, err, ErrChecksum)
}

func TestABinaryStaysOpenUntilItsLastHolderClosesIt(t *testing.T) {
	b := pinned(t, "abc")
	b.Share().Close()
	_, err := executed(t, b, digestOfABC)
	require.NoError(t, err)
	b.Close()
	_, err = executed(t, b, digestOfABC)
	require.ErrorIs(t, err, os.ErrClosed)
}

func TestAnUnreadableFileCannotBePinned(t *testing.T) {
	_, err := Pin(filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Digest(t.TempDir())
	require.Error(t, err)
}
