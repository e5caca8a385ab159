package api

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
)

// Description is api/openapi.yaml as it is in the program.
var Description = described

// Document returns what the code alone says of the operations: test/describe completes
// it.
func Document(c Config) *huma.OpenAPI {
	return addOperations(chi.NewMux(), c, guard.NewSessions(nil, nil), audit.NewRecorder(nil, c.Log, "")).OpenAPI()
}
