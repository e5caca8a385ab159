package assets_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/assets"
)

func get(path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	assets.ServeHTTP(w, r)
	return w
}

func TestAnAssetIsLoadedOnce(t *testing.T) {
	path, err := assets.Path("app.css")
	require.NoError(t, err)
	require.Regexp(t, `^/ui/assets/app\.[0-9a-f]{12}\.css$`, path)

	packed := get(path, "Accept-Encoding: br, gzip")
	require.Equal(t, 200, packed.Code)
	require.Equal(t, "text/css; charset=utf-8", packed.Header().Get("Content-Type"))
	require.Equal(t, "public, max-age=31536000, immutable", packed.Header().Get("Cache-Control"))
	require.Equal(t, "Accept-Encoding", packed.Header().Get("Vary"))
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	reader, err := gzip.NewReader(bytes.NewReader(packed.Body.Bytes()))
	require.NoError(t, err)
	unpacked, err := io.ReadAll(reader)
	require.NoError(t, err)
	plain := get(path)
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, plain.Body.String(), string(unpacked))

	again := get(path, "If-None-Match: "+packed.Header().Get("Etag"))
	require.Equal(t, 304, again.Code)
	require.Zero(t, again.Body.Len())
}

func TestOnlyPresentAssetsAreServed(t *testing.T) {
	for _, path := range []string{"/ui/assets/app.css", "/ui/assets/", "/ui/assets/app.000000000000.css", "/ui/assets/vendor/SHA256SUMS"} {
		w := get(path)
		require.Equal(t, 404, w.Code, path)
		require.NotContains(t, w.Header().Get("Cache-Control"), "immutable")
	}
	_, err := assets.Path("nothing.js")
	require.ErrorContains(t, err, "there is no asset nothing.js")
}

// TestVendoredFilesAreThoseOfTheirPackages compares them with the digests of what npm serves.
func TestVendoredFilesAreThoseOfTheirPackages(t *testing.T) {
	root := filepath.Join("files", "vendor")
	sums, err := os.ReadFile(filepath.Join(root, "SHA256SUMS"))
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		digest, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		want[file] = digest
	}
	got := map[string]string{}
	licensed := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "SHA256SUMS" {
			return err
		}
		text, err := os.ReadFile(path)
		digest := sha256.Sum256(text)
		name, _ := filepath.Rel(root, path)
		got[filepath.ToSlash(name)] = hex.EncodeToString(digest[:])
		folder := filepath.Base(filepath.Dir(path))
		licensed[folder] = licensed[folder] || entry.Name() == "LICENSE"
		return err
	}))
	require.Equal(t, want, got)
	for folder, has := range licensed {
		require.True(t, has, "%s has no LICENSE", folder)
		require.Regexp(t, `^[a-z]+-\d+\.\d+\.\d+$`, folder, "the folder says the version")
	}
}

func TestTheFirstLoadIsSmall(t *testing.T) {
	sizes := map[string]int{}
	sum := 0
	for _, name := range []string{"app.css", "app.js", "charts.js", "icon.svg", "uplot.css", "uplot.js"} {
		path, err := assets.Path(name)
		require.NoError(t, err)
		sizes[name] = get(path, "Accept-Encoding: gzip").Body.Len()
		sum += sizes[name]
	}
	require.LessOrEqual(t, sizes["app.css"], 10_000)
	require.LessOrEqual(t, sizes["app.js"], 12_000)
	require.LessOrEqual(t, sum, 60_000, "all assets together: %v", sizes)
}
