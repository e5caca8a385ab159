// Package assets serves the style sheets, scripts and pictures of the UI. They are part of the
// program, and have names with a digest of their content, so browsers load each version once.
package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Root is the path that the assets are under.
const Root = "/ui/assets/"

// files has own files, and those of others under vendor, with version and license.
// vendor/SHA256SUMS has the digests of the files in the packages that npm serves.
//
//go:embed files
var files embed.FS

// served are the files under the names that templates use.
var served = map[string]string{
	"app.css":   "files/app.css",
	"app.js":    "files/app.js",
	"charts.js": "files/charts.js",
	"icon.svg":  "files/icon.svg",
	"uplot.css": "files/vendor/uplot-1.6.32/uPlot.min.css",
	"uplot.js":  "files/vendor/uplot-1.6.32/uPlot.iife.min.js",
}

// asset is a file, as it is sent.
type asset struct {
	path, media, tag  string
	plain, compressed []byte
}

// all has every asset twice: by the name that templates use, and by its path.
var all = sync.OnceValue(func() map[string]*asset {
	found := map[string]*asset{}
	for name, file := range served {
		one := load(name, file)
		found[name], found[one.path] = one, one
	}
	return found
})

func load(name, file string) *asset {
	plain, err := fs.ReadFile(files, file)
	if err != nil {
		panic(err) // That fails in any test.
	}
	digest := sha256.Sum256(plain)
	ending := path.Ext(name)
	short := hex.EncodeToString(digest[:6])
	compressed := &bytes.Buffer{}
	zip, _ := gzip.NewWriterLevel(compressed, gzip.BestCompression)
	_, _ = zip.Write(plain) // A buffer takes everything.
	_ = zip.Close()
	return &asset{
		path: Root + strings.TrimSuffix(name, ending) + "." + short + ending, media: mime.TypeByExtension(ending),
		tag: `"` + short + `"`, plain: plain, compressed: compressed.Bytes(),
	}
}

// Path returns the path of an asset. The error, for a name that is none, fails in the test
// that renders the template.
func Path(name string) (string, error) {
	one := all()[name]
	if one == nil || strings.HasPrefix(name, Root) {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return one.path, nil
}

// ServeHTTP answers a request for the path of an asset.
func ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := all()[r.URL.Path]
	if one == nil {
		// Perhaps of another version of the program. The next page has the new path.
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	header.Set("Etag", one.tag)
	if r.Header.Get("If-None-Match") == one.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", one.media)
	body := one.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		body = one.compressed
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // It fails when the client has left.
	}
}
