package v1

import "github.com/holdfast-jobs/holdfast/runtime/job"

// JobType is a job type as a handler last declared it, with the configuration
// applied.
type JobType struct {
	JobType        string  `json:"jobType" example:"SEND_EMAIL"`
	Plugin         string  `json:"plugin" doc:"The plugin that serves it."`
	Version        string  `json:"version" doc:"The plugin's version."`
	Description    string  `json:"description,omitempty" doc:"What it is for, in the handler's words."`
	MaxAttempts    int     `json:"maxAttempts" doc:"How many attempts a job may take, unless it says otherwise."`
	TimeoutSeconds float64 `json:"timeoutSeconds" doc:"Time limit of each attempt, unless the job says otherwise."`
	Concurrency    int     `json:"concurrency,omitempty" doc:"How many attempts of this type a plugin process runs at once. Absent if only the limit for all types applies."`
	Retry          Retry   `json:"retry"`
	HasSchema      bool    `json:"hasSchema" doc:"Whether payloads are checked against a JSON Schema."`
}

// Retry says how long a job waits before its next attempt.
type Retry struct {
	Backoff               job.Backoff `json:"backoff" enum:"exponential,fixed,immediate"`
	InitialDelaySeconds   float64     `json:"initialDelaySeconds"`
	Factor                float64     `json:"factor"`
	MaxDelaySeconds       float64     `json:"maxDelaySeconds"`
	JitterMin             float64     `json:"jitterMin"`
	JitterMax             float64     `json:"jitterMax"`
	ImmediateAfterTimeout bool        `json:"immediateAfterTimeout"`
}

// JobTypeOf returns a job type.
func JobTypeOf(spec job.TypeSpec) JobType {
	return JobType{
		JobType: spec.Type, Plugin: spec.Plugin, Version: spec.Version, Description: spec.Description,
		MaxAttempts: spec.MaxAttempts, TimeoutSeconds: spec.Timeout.Seconds(), Concurrency: spec.Concurrency,
		Retry: Retry{
			Backoff: spec.Retry.Backoff, InitialDelaySeconds: spec.Retry.InitialDelay.Seconds(), Factor: spec.Retry.Factor,
			MaxDelaySeconds: spec.Retry.MaxDelay.Seconds(), JitterMin: spec.Retry.JitterMin, JitterMax: spec.Retry.JitterMax,
			ImmediateAfterTimeout: spec.Retry.ImmediateAfterTimeout,
		},
		HasSchema: len(spec.Schema) > 0,
	}
}

// JobTypeList is all job types.
type JobTypeList struct {
	JobTypes []JobType `json:"jobTypes" nullable:"false" doc:"By name."`
}

// JobTypeListOf returns the job types.
func JobTypeListOf(specs []job.TypeSpec) JobTypeList { return JobTypeList{listOf(specs, JobTypeOf)} }
