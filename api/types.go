package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// typeInput names a job type. Its name can hold any character that can be
// printed, slashes too.
type typeInput struct {
	query
	Type string `path:"type" doc:"The job type, percent-encoded."`
}

type typesOutput struct{ Body v1.JobTypeList }

type typeOutput struct{ Body v1.JobType }

type schemaOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

// schemaMedia is what JSON Schema calls itself.
const schemaMedia = "application/schema+json"

func (s *service) addTypes(routes huma.API) {
	huma.Register(routes, scoped(guard.Read, huma.Operation{
		OperationID: "list-job-types", Method: http.MethodGet, Path: "/job-types",
		Summary:     "List the job types",
		Description: "Every one that a handler has ever declared, with the configuration laid over it.",
		Tags:        []string{"Job types"},
	}), s.types)

	huma.Register(routes, scoped(guard.Read, huma.Operation{
		OperationID: "get-job-type", Method: http.MethodGet, Path: "/job-types/{type}",
		Summary:     "See a job type",
		Description: "As the handler declared it that did so last, with the configuration laid over it.",
		Tags:        []string{"Job types"},
	}), func(ctx context.Context, in *typeInput) (*typeOutput, error) {
		spec, err := s.declared(ctx, in.decoded(in.Type))
		if err != nil {
			return nil, err
		}
		return &typeOutput{Body: v1.JobTypeOf(spec)}, nil
	})

	huma.Register(routes, scoped(guard.Read, huma.Operation{
		OperationID: "get-job-type-schema", Method: http.MethodGet, Path: "/job-types/{type}/schema",
		Summary:     "See the JSON Schema of a job type's payload",
		Description: "To the letter, as the handler declared it. Answers 404 for a type that takes any payload.",
		Tags:        []string{"Job types"},
		Responses: map[string]*huma.Response{"200": {
			Description: "The schema.",
			Content:     map[string]*huma.MediaType{schemaMedia: {Schema: &huma.Schema{Type: huma.TypeObject}}},
		}},
	}), func(ctx context.Context, in *typeInput) (*schemaOutput, error) {
		spec, err := s.declared(ctx, in.decoded(in.Type))
		switch {
		case err != nil:
			return nil, err
		case len(spec.Schema) == 0:
			return nil, problem(http.StatusNotFound, "the job type declares no schema")
		}
		return &schemaOutput{ContentType: schemaMedia, Body: spec.Schema}, nil
	})
}

func (s *service) types(ctx context.Context, _ *plainInput) (*typesOutput, error) {
	specs, err := s.jobs.Types(ctx)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &typesOutput{Body: v1.JobTypeListOf(specs)}, nil
}

// declared returns a type that a handler has declared. Jobs.TypeSpec also knows
// those that are merely accepted.
func (s *service) declared(ctx context.Context, name string) (job.TypeSpec, error) {
	specs, err := s.jobs.Types(ctx)
	if err != nil {
		return job.TypeSpec{}, s.fail(ctx, err)
	}
	for _, spec := range specs {
		if spec.Type == name {
			return spec, nil
		}
	}
	return job.TypeSpec{}, problem(http.StatusNotFound, "no such job type")
}
