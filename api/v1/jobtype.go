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
	Terms          *Terms  `json:"terms,omitempty" doc:"How its jobs share with others, unless they say otherwise. Absent if the handler declares nothing."`
	HasSchema      bool    `json:"hasSchema" doc:"Whether payloads are checked against a JSON Schema."`
}

// Terms say where in the payload of a job its keys are, and what is shared by them.
type Terms struct {
	ConcurrencyKey   string         `json:"concurrencyKey,omitempty" format:"json-pointer" example:"/customerId" doc:"A JSON Pointer to what the job's concurrency key ends with. A job whose payload has no such value has no key."`
	KeyClass         string         `json:"keyClass,omitempty" example:"customer" doc:"What the concurrency key begins with, before a colon."`
	ConcurrencyLimit int            `json:"concurrencyLimit,omitempty" doc:"How many jobs of the key may run when one of this type starts. Absent for the limit of the key's class."`
	OnConflict       job.OnConflict `json:"onConflict,omitempty" enum:"queue,cancel_newcomer,cancel_oldest" doc:"What happens if so many run. Absent for what the limit of the key's class says."`
	FairnessKey      string         `json:"fairnessKey,omitempty" format:"json-pointer" example:"/region" doc:"A JSON Pointer to the job's fairness key."`
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
	jobType := JobType{
		JobType: spec.Type, Plugin: spec.Plugin, Version: spec.Version, Description: spec.Description,
		MaxAttempts: spec.MaxAttempts, TimeoutSeconds: spec.Timeout.Seconds(), Concurrency: spec.Concurrency,
		Retry: Retry{
			Backoff: spec.Retry.Backoff, InitialDelaySeconds: spec.Retry.InitialDelay.Seconds(), Factor: spec.Retry.Factor,
			MaxDelaySeconds: spec.Retry.MaxDelay.Seconds(), JitterMin: spec.Retry.JitterMin, JitterMax: spec.Retry.JitterMax,
			ImmediateAfterTimeout: spec.Retry.ImmediateAfterTimeout,
		},
		HasSchema: len(spec.Schema) > 0,
	}
	if spec.Terms != nil {
		jobType.Terms = new(Terms(*spec.Terms))
	}
	return jobType
}

// JobTypeList is all job types.
type JobTypeList struct {
	JobTypes []JobType `json:"jobTypes" nullable:"false" doc:"By name."`
}

// JobTypeListOf returns the job types.
func JobTypeListOf(specs []job.TypeSpec) JobTypeList { return JobTypeList{listOf(specs, JobTypeOf)} }
