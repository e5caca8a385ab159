//go:build linux

package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALogIsKeptAsAWholeUnlessItIsTooLong(t *testing.T) {
	dir := t.TempDir()
	path, packed := filepath.Join(dir, "log"), filepath.Join(dir, "log.gz")
	require.NoError(t, os.WriteFile(path, []byte("first\nsecond\n"), 0o600))
	for most, want := range map[int64]string{1 << 20: "first\nsecond\n", 7: "second\n"} {
		require.NoError(t, pack(path, packed, most))
		file, err := os.Open(packed)
		require.NoError(t, err)
		unpacked, err := gzip.NewReader(file)
		require.NoError(t, err)
		text, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.Equal(t, want, string(text))
	}
	require.ErrorIs(t, pack(filepath.Join(dir, "none"), packed, 1), os.ErrNotExist)
}
