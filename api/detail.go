package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// JobDetail is everything that is known of a job, for operators.
type JobDetail struct {
	Job
	State           job.State       `json:"state" enum:"created,queued,running,retry,succeeded,dead,canceled" doc:"The exact state behind the status."`
	Tenant          string          `json:"tenant"`
	Payload         json.RawMessage `json:"payload" doc:"Any JSON value, as it was submitted."`
	Checkpoint      json.RawMessage `json:"checkpoint,omitempty" doc:"What the next attempt resumes from: any JSON value."`
	IdempotencyKey  string          `json:"idempotencyKey,omitempty"`
	Tags            []string        `json:"tags" nullable:"false"`
	Priority        int16           `json:"priority"`
	RunAt           *time.Time      `json:"runAt,omitempty" doc:"When the job is, or was, due; absent while it is held."`
	Held            bool            `json:"held" doc:"Whether it waits for its release."`
	AttemptsCharged int             `json:"attemptsCharged" doc:"How many attempts count against maxAttempts, the running one included."`
	MaxAttempts     int             `json:"maxAttempts"`
	Interruptions   int             `json:"interruptions" doc:"How often its worker vanished under it: such attempts are not charged."`
	Crashes         int             `json:"crashes" doc:"How many handler processes have died under it since an attempt came to another end. With any, its attempts run in a process of their own."`
	Fence           int64           `json:"fence" doc:"The fencing token of the latest attempt: it only grows."`
	TimeoutSeconds  float64         `json:"timeoutSeconds" doc:"Bound on each attempt."`
	LastError       string          `json:"lastError,omitempty"`
	Worker          string          `json:"worker,omitempty" doc:"Who ran the latest attempt."`
	TraceParent     string          `json:"traceParent,omitempty" doc:"The W3C trace context that the job was submitted with."`
	TraceID         string          `json:"traceId,omitempty" doc:"The trace to look for."`
	TraceURL        string          `json:"traceUrl,omitempty" doc:"Where to see the trace, if that is configured (tracing.trace_url_template) and the trace is sampled."`
	Lease           *Lease          `json:"lease,omitempty" doc:"Absent unless the job is running."`
	Attempts        []Attempt       `json:"attempts" nullable:"false" doc:"Those that have ended, oldest first."`
}

// Lease is a lease as operators see it.
type Lease struct {
	Worker          string    `json:"worker"`
	ClaimedAt       time.Time `json:"claimedAt"`
	ExpiresAt       time.Time `json:"expiresAt"`
	CancelRequested bool      `json:"cancelRequested"`
}

// Attempt is one run of a handler that has ended.
type Attempt struct {
	Number          int             `json:"number" doc:"Counts the attempts that are charged, from 1, and again after a requeue."`
	Fence           int64           `json:"fence"`
	Outcome         job.OutcomeKind `json:"outcome" enum:"succeeded,failed,permanent,timeout,crashed,suspected,lease_expired,interrupted,given_back,snoozed,canceled"`
	Worker          string          `json:"worker"`
	Plugin          string          `json:"plugin,omitempty"`
	PluginVersion   string          `json:"pluginVersion,omitempty"`
	ClaimedAt       time.Time       `json:"claimedAt"`
	EndedAt         time.Time       `json:"endedAt"`
	DurationSeconds float64         `json:"durationSeconds"`
	Code            string          `json:"code,omitempty" doc:"What kind of error it was."`
	Error           string          `json:"error,omitempty"`
	Stack           string          `json:"stack,omitempty"`
	SpanID          string          `json:"spanId,omitempty" doc:"The attempt's span within the trace."`
}

type detailOutput struct{ Body JobDetail }

func (s *service) addDetail(routes huma.API) {
	huma.Register(routes, scoped(guard.Operate, huma.Operation{
		OperationID: "inspect-job", Method: http.MethodGet, Path: "/debug/jobs/{id}",
		Summary:     "See everything about a job",
		Description: "Its payload, attempts, errors, worker, lease and trace too, which clients are not shown.",
		Tags:        []string{"Operation"},
	}), s.detail)
}

func (s *service) detail(ctx context.Context, in *jobInput) (*detailOutput, error) {
	detail, err := s.operations.Detail(ctx, in.ID.ID)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && detail.Tenant != bound {
		err = job.ErrNotFound
	}
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	body := detailOf(detail)
	if s.traceLink != "" && remote(detail.Trace).IsSampled() {
		body.TraceURL = strings.ReplaceAll(s.traceLink, "{trace_id}", body.TraceID)
	}
	return &detailOutput{Body: body}, nil
}

func detailOf(d job.Detail) JobDetail {
	return JobDetail{
		Job: seen(d.View), State: d.State, Tenant: d.Tenant, Payload: d.Payload, Checkpoint: d.Checkpoint,
		IdempotencyKey: d.IdempotencyKey, Tags: append([]string{}, d.Tags...), Priority: d.Priority,
		RunAt: dueOf(d), Held: d.State == job.Created && d.RunAt.IsZero(),
		AttemptsCharged: d.Charged, MaxAttempts: d.MaxAttempts, Interruptions: d.Interruptions,
		Crashes: d.Crashes, Fence: d.Fence, TimeoutSeconds: d.Timeout.Seconds(), LastError: d.LastError, Worker: d.Worker,
		TraceParent: d.Trace.Parent, TraceID: d.Trace.ID(), Lease: leaseOf(d.Lease), Attempts: attemptsOf(d.Attempts),
	}
}

func dueOf(d job.Detail) *time.Time {
	if d.RunAt.IsZero() {
		return nil
	}
	return utc(&d.RunAt)
}

func leaseOf(l *job.LeaseView) *Lease {
	if l == nil {
		return nil
	}
	return &Lease{
		Worker: l.Worker, ClaimedAt: l.ClaimedAt.UTC(), ExpiresAt: l.ExpiresAt.UTC(), CancelRequested: l.CancelRequested,
	}
}

func attemptsOf(ended []job.Attempt) []Attempt {
	attempts := make([]Attempt, 0, len(ended))
	for _, a := range ended {
		attempts = append(attempts, Attempt{
			Number: a.Number, Fence: a.Fence, Outcome: a.Outcome, Worker: a.WorkerID,
			Plugin: a.Plugin, PluginVersion: a.PluginVersion,
			ClaimedAt: a.ClaimedAt.UTC(), EndedAt: a.EndedAt.UTC(), DurationSeconds: a.EndedAt.Sub(a.ClaimedAt).Seconds(),
			Code: a.Code, Error: a.Error, Stack: a.Stack, SpanID: a.SpanID,
		})
	}
	return attempts
}
