package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobType is a job type as the handler declared it that did so last, with the
// configuration laid over it.
type JobType struct {
	JobType        string  `json:"jobType" example:"SEND_EMAIL"`
	Plugin         string  `json:"plugin" doc:"The plugin that serves it."`
	Version        string  `json:"version" doc:"The plugin's version."`
	Description    string  `json:"description,omitempty" doc:"What it is for, in the handler's words."`
	MaxAttempts    int     `json:"maxAttempts" doc:"How often a handler may be started for a job that does not say."`
	TimeoutSeconds float64 `json:"timeoutSeconds" doc:"Bound on each attempt of a job that does not say."`
	Concurrency    int     `json:"concurrency,omitempty" doc:"The most attempts of this type that a process of the plugin is given at once; absent for as many as it takes of all types."`
	Retry          Retry   `json:"retry"`
	HasSchema      bool    `json:"hasSchema" doc:"Whether payloads are checked against a JSON Schema."`
}

// Retry says how long a job waits before its next attempt.
type Retry struct {
	Backoff            job.Backoff `json:"backoff" enum:"exponential,fixed,immediate"`
	BaseSeconds        float64     `json:"baseSeconds"`
	Factor             float64     `json:"factor"`
	CapSeconds         float64     `json:"capSeconds"`
	JitterMin          float64     `json:"jitterMin"`
	JitterMax          float64     `json:"jitterMax"`
	AtOnceAfterTimeout bool        `json:"atOnceAfterTimeout"`
}

func typeOf(spec job.TypeSpec) JobType {
	return JobType{
		JobType: spec.Type, Plugin: spec.Plugin, Version: spec.Version, Description: spec.Description,
		MaxAttempts: spec.MaxAttempts, TimeoutSeconds: spec.Timeout.Seconds(), Concurrency: spec.Concurrency,
		Retry: Retry{
			Backoff: spec.Retry.Backoff, BaseSeconds: spec.Retry.InitialDelay.Seconds(), Factor: spec.Retry.Factor,
			CapSeconds: spec.Retry.MaxDelay.Seconds(), JitterMin: spec.Retry.JitterMin, JitterMax: spec.Retry.JitterMax,
			AtOnceAfterTimeout: spec.Retry.ImmediateAfterTimeout,
		},
		HasSchema: len(spec.Schema) > 0,
	}
}

// typeInput names a job type. Its name can hold any character that can be
// printed, slashes too.
type typeInput struct {
	query
	Type string `path:"type" doc:"The job type, percent-encoded."`
}

// JobTypeList is all job types.
type JobTypeList struct {
	JobTypes []JobType `json:"jobTypes" nullable:"false" doc:"By name."`
}

type typesOutput struct{ Body JobTypeList }

type typeOutput struct{ Body JobType }

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
		return &typeOutput{Body: typeOf(spec)}, nil
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
	out := &typesOutput{}
	out.Body.JobTypes = make([]JobType, 0, len(specs))
	for _, spec := range specs {
		out.Body.JobTypes = append(out.Body.JobTypes, typeOf(spec))
	}
	return out, nil
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
