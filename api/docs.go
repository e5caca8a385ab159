package api

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/swaggest/swgui/v5/static"
)

//go:embed docs
var docs embed.FS

// docsPolicy allows the page to load only from this server and to run scripts only
// from files. No other page may embed it. Swagger UI has its pictures in data URLs.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// keepDocs is for answers that change only with the program.
const keepDocs = "private, max-age=3600"

// serveDocs serves a page that shows the OpenAPI description. All of its files are
// in the program.
func serveDocs(router chi.Router) {
	serve := func(path, contentType string, body []byte, compressed bool) {
		router.Get(path, func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header.Set("Content-Type", contentType)
			header.Set("Content-Security-Policy", docsPolicy)
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cache-Control", keepDocs)
			if compressed {
				header.Set("Vary", "Accept-Encoding")
				writeCompressed(w, r, body)
				return
			}
			_, _ = w.Write(body)
		})
	}
	for _, page := range []struct{ path, file, contentType string }{
		{"/docs", "index.html", "text/html; charset=utf-8"},
		{"/docs/docs.js", "docs.js", "text/javascript; charset=utf-8"},
		{"/docs/docs.css", "docs.css", "text/css; charset=utf-8"},
	} {
		serve(page.path, page.contentType, embedded(docs, "docs/"+page.file), false)
	}
	for _, asset := range []struct{ file, contentType string }{
		{"swagger-ui-bundle.js", "text/javascript; charset=utf-8"},
		{"swagger-ui.css", "text/css; charset=utf-8"},
	} {
		serve("/docs/"+asset.file, asset.contentType, embedded(static.FS, asset.file+".gz"), true)
	}
}

// embedded returns a file of the program. A wrong name fails in any test.
func embedded(files embed.FS, name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return body
}

// writeCompressed answers with a file that is kept compressed.
func writeCompressed(w http.ResponseWriter, r *http.Request, body []byte) {
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(body)
		return
	}
	plain, err := gzip.NewReader(bytes.NewReader(body))
	if err == nil {
		_, err = io.Copy(w, plain)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // The client has left: the file itself is whole.
	}
}
