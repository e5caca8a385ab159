package api

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
)

// serveDocument serves the OpenAPI description. It stands in for huma's own
// routes, which build the document on first use without a lock.
func serveDocument(router chi.Router, document *huma.OpenAPI) {
	serve := func(path, contentType string, render func() ([]byte, error)) {
		rendered := sync.OnceValues(render)
		router.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			text, err := rendered()
			if err != nil {
				writeProblem(w, http.StatusInternalServerError, "the description could not be rendered")
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(text)
		})
	}
	serve("/openapi.json", "application/openapi+json", func() ([]byte, error) { return json.Marshal(document) })
	serve("/openapi.yaml", "application/openapi+yaml", document.YAML)
}
