package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// operatorRoutes serve operators: jobs in full detail, workers, queues, metrics, and
// the doctor.
type operatorRoutes struct {
	operations Operations
	jobs       Jobs
	deadline   deadline
	// traceURL is the address of a trace, with {trace_id} for its id; empty for
	// none.
	traceURL   string
	prometheus http.Handler
	// settings may be nil for none.
	settings func() []v1.Setting
	// measuring shares one computation of the metrics among the requests that wait for
	// it.
	measuring singleflight.Group
	// charting does so for series.
	charting singleflight.Group
	// diagnosing is held during a diagnosis.
	diagnosing sync.Mutex
}

func (o *operatorRoutes) add(r *router) {
	add(r, "GET /debug/jobs/{id}", "inspect-job", guard.Observe, o.inspect)
	add(r, "GET /debug/jobs/{id}/logs", "get-job-logs", guard.Observe, o.logs, showsPayloads)
	add(r, "GET /debug/workers", "list-workers", guard.Observe, o.workers, acrossTenants)
	add(r, "GET /debug/workers/summary", "summarize-workers", guard.Observe, o.summary, acrossTenants, mayBeStale)
	add(r, "GET /debug/queues", "list-queues", guard.Observe, o.queues, acrossTenants, mayBeStale)
	add(r, "GET /debug/series", "get-series", guard.Observe, o.series, acrossTenants, mayBeStale)
	add(r, "GET /debug/doctor", "diagnose", guard.Observe, o.diagnose, acrossTenants, ownDeadline)
	add(r, "GET /debug/config", "get-config", guard.Observe, o.config, acrossTenants)
	add(r, "GET /debug/replica", "get-replica", guard.Observe, o.replica, acrossTenants)
	o.addMetrics(r)
}

func (o *operatorRoutes) addMetrics(r *router) {
	add(r, "GET /metrics", "get-metrics", guard.Observe, o.metrics, acrossTenants, mayBeStale)
}

func (o *operatorRoutes) inspect(ctx context.Context, in *jobInput) (*body[v1.JobDetail], error) {
	detail, err := o.operations.Detail(ctx, in.ID)
	if bound := guard.Tenant(ctx); err == nil && bound != "" && detail.Tenant != bound {
		err = job.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	shown := v1.JobDetailOf(detail)
	if o.traceURL != "" && spanContextOf(detail.Trace).IsSampled() {
		shown.TraceURL = strings.ReplaceAll(o.traceURL, "{trace_id}", shown.TraceID)
	}
	return &body[v1.JobDetail]{shown}, nil
}

const (
	// maxLogs is how many attempts' logs are shown at once. Each can have 32 KB.
	maxLogs = 20
	// maxAttemptNumber is the most attempts that a job can have.
	maxAttemptNumber = 1_000_000
)

type logsInput struct {
	call
	ID      job.ID       `path:"id" format:"uuid" doc:"The jobId that the submission returned."`
	Attempt attemptParam `query:"attempt" doc:"Only the attempts with this number."`
}

// attemptParam is the number of an attempt; 0 for none.
type attemptParam struct{ n int }

// UnmarshalText accepts a whole number.
func (p *attemptParam) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > maxAttemptNumber {
		return fmt.Errorf("must be a whole number from 1 to %d", maxAttemptNumber)
	}
	p.n = n
	return nil
}

// Schema describes the number.
func (attemptParam) Schema(huma.Registry) *huma.Schema {
	least, most := 1.0, float64(maxAttemptNumber)
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
}

func (o *operatorRoutes) logs(ctx context.Context, in *logsInput) (*body[v1.JobLogs], error) {
	if err := mayTouch(ctx, o.jobs, in.ID); err != nil {
		return nil, err
	}
	logs, err := o.operations.Logs(ctx, in.ID, job.LogFilter{Number: in.Attempt.n, Limit: maxLogs})
	if err == nil && len(logs) == 0 {
		_, err = o.jobs.Get(ctx, in.ID) // There may be no such job.
	}
	return bodyOf(logs, err, func(logs []job.AttemptLog) v1.JobLogs { return v1.JobLogsOf(in.ID, logs) })
}

func (o *operatorRoutes) workers(ctx context.Context, _ *call) (*body[v1.WorkerList], error) {
	workers, err := o.operations.Workers(ctx)
	return bodyOf(workers, err, func(workers []v1.Worker) v1.WorkerList { return v1.WorkerList{Workers: workers} })
}

type summaryInput struct {
	call
	SinceMinutes minutesParam `query:"sinceMinutes" doc:"How many of the last minutes to count, up to 1440. Without it, all time counts."`
}

func (o *operatorRoutes) summary(ctx context.Context, in *summaryInput) (*body[v1.WorkerSummary], error) {
	totals, err := o.operations.WorkerTotals(ctx, time.Duration(in.SinceMinutes.n)*time.Minute)
	return bodyOf(totals, err, func(totals map[job.State]int64) v1.WorkerSummary {
		return v1.WorkerSummary{SinceMinutes: in.SinceMinutes.n, Totals: totals}
	})
}

func (o *operatorRoutes) queues(ctx context.Context, _ *call) (*body[v1.QueueList], error) {
	queues, err := o.operations.Queues(ctx)
	return bodyOf(queues, err, v1.QueueListOf)
}

func (o *operatorRoutes) config(context.Context, *call) (*body[v1.Configuration], error) {
	shown := v1.Configuration{Settings: []v1.Setting{}}
	if o.settings != nil {
		shown.Settings = o.settings()
	}
	return &body[v1.Configuration]{shown}, nil
}

func (o *operatorRoutes) replica(context.Context, *call) (*body[v1.Replica], error) {
	return &body[v1.Replica]{o.operations.Replica()}, nil
}

const (
	// diagnoseWithin bounds a diagnosis, which looks at every job.
	diagnoseWithin = 2 * time.Minute
	// diagnoseAgain is the Retry-After during a diagnosis.
	diagnoseAgain = 10 * time.Second
)

func (o *operatorRoutes) diagnose(ctx context.Context, in *call) (*body[v1.Diagnosis], error) {
	if !o.diagnosing.TryLock() {
		return nil, diagnoseLater("another diagnosis is in progress")
	}
	defer o.diagnosing.Unlock()
	in.allowTime(diagnoseWithin)
	ctx, cancel := o.deadline.orStop(ctx, diagnoseWithin)
	defer cancel()
	checks, err := o.operations.Diagnose(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = diagnoseLater("the diagnosis took longer than " + diagnoseWithin.String())
	}
	return bodyOf(checks, err, v1.DiagnosisOf)
}

func diagnoseLater(why string) *v1.Problem {
	p := v1.Unavailable(why)
	p.RetryAfter = diagnoseAgain
	return p
}

type metricsInput struct {
	call
	SinceMinutes recentParam `query:"sinceMinutes" doc:"How many minutes recent covers, up to 1440."`
}

// prefersPrometheus reports whether the client prefers a format of Prometheus to
// JSON. Without a preference it gets JSON. A q that does not come first among the
// parameters of a format counts as 1, and that is enough: programs that send such a q
// do not ask for JSON.
func prefersPrometheus(header http.Header) bool {
	accepted := strings.ToLower(strings.Join(header.Values("Accept"), ","))
	best := negotiation.SelectQValue(accepted, []string{mediaJSON, "text/plain", "text/*", "application/openmetrics-text"})
	return best != "" && best != mediaJSON
}

// metrics answers Prometheus in its own format. In JSON, it computes the answer once
// for all requests that wait for it with the same window; later requests get a new
// one.
func (o *operatorRoutes) metrics(ctx context.Context, in *metricsInput) (*huma.StreamResponse, error) {
	in.answer.Header().Set("Vary", "Accept")
	if prefersPrometheus(in.request.Header) {
		if o.prometheus == nil {
			return nil, problem(http.StatusNotAcceptable, "only JSON is offered here")
		}
		return &huma.StreamResponse{Body: func(huma.Context) { o.prometheus.ServeHTTP(in.answer, in.request) }}, nil
	}
	minutes := in.SinceMinutes.n
	if minutes == 0 {
		minutes = recentMinutes
	}
	metrics, err := once(ctx, o.deadline, &o.measuring, fmt.Sprint(minutes), func(ctx context.Context) (v1.Metrics, error) {
		return o.operations.Metrics(ctx, time.Duration(minutes)*time.Minute)
	})
	if err != nil {
		return nil, err
	}
	return answerJSON(http.StatusOK, metrics), nil
}
