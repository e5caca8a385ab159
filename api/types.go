package api

import (
	"context"
	"net/http"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// typeRoutes show what can be submitted.
type typeRoutes struct{ jobs Jobs }

func (t *typeRoutes) add(r *router) {
	add(r, "GET /job-types", "list-job-types", guard.Read, t.list)
	add(r, "GET /job-types/{type}", "get-job-type", guard.Read, t.get)
	add(r, "GET /job-types/{type}/schema", "get-job-type-schema", guard.Read, t.schema)
}

// typeInput names a job type. The name may contain any characters.
type typeInput struct {
	call
	Type string `path:"type" doc:"The job type, percent-encoded."`
}

type schemaOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (t *typeRoutes) list(ctx context.Context, _ *call) (*body[v1.JobTypeList], error) {
	specs, err := t.jobs.Types(ctx)
	return bodyOf(specs, err, v1.JobTypeListOf)
}

func (t *typeRoutes) get(ctx context.Context, in *typeInput) (*body[v1.JobType], error) {
	spec, err := t.declared(ctx, in)
	return bodyOf(spec, err, v1.JobTypeOf)
}

func (t *typeRoutes) schema(ctx context.Context, in *typeInput) (*schemaOutput, error) {
	spec, err := t.declared(ctx, in)
	switch {
	case err != nil:
		return nil, err
	case len(spec.Schema) == 0:
		return nil, problem(http.StatusNotFound, "the job type declares no schema")
	}
	return &schemaOutput{ContentType: "application/schema+json", Body: spec.Schema}, nil
}

// declared returns a type that a handler has declared. Jobs.TypeSpec also returns
// types that no handler has declared but that are accepted.
func (t *typeRoutes) declared(ctx context.Context, in *typeInput) (job.TypeSpec, error) {
	specs, err := t.jobs.Types(ctx)
	if err != nil {
		return job.TypeSpec{}, err
	}
	name := in.decoded(in.Type)
	for _, spec := range specs {
		if spec.Type == name {
			return spec, nil
		}
	}
	return job.TypeSpec{}, problem(http.StatusNotFound, "no such job type")
}
