package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Metrics is how the whole system stands at one moment. Prometheus has its own
// format on the same path.
type Metrics struct {
	At                          time.Time                      `json:"at"`
	StatusCounts                map[job.State]int64            `json:"statusCounts" doc:"How many jobs there are in each exact state, all of them named."`
	ByWorker                    map[string]map[job.State]int64 `json:"byWorker" doc:"How many jobs each worker runs, and how many it has ended, by their exact state."`
	AttemptDistribution         map[int]int64                  `json:"attemptDistribution" doc:"How many jobs have been charged so many attempts."`
	ScheduledForRetry           int64                          `json:"scheduledForRetry" doc:"Jobs that wait out a backoff."`
	Recent                      Recent                         `json:"recent"`
	ProcessedLastMinute         int64                          `json:"processedLastMinute" doc:"Attempts that ended in the last minute, without those that were interrupted, suspected or given back."`
	FailuresByJobType           map[string]int64               `json:"failuresByJobType" doc:"Attempts that have failed, ever."`
	AvgDurationSecondsByJobType map[string]float64             `json:"avgDurationSecondsByJobType" doc:"Mean duration of the attempts that succeeded, ever."`
	Queues                      []Queue                        `json:"queues" nullable:"false"`
	OldestSnapshotSeconds       float64                        `json:"oldestSnapshotSeconds" doc:"How long the oldest transaction, prepared transaction or replication slot has kept the database from cleaning up."`
	SnapshotAgeTransactions     int64                          `json:"snapshotAgeTransactions" doc:"The same in transactions."`
}

// Recent counts what happened of late.
type Recent struct {
	SinceMinutes   int   `json:"sinceMinutes" doc:"How far back it goes."`
	Submitted      int64 `json:"submitted"`
	Succeeded      int64 `json:"succeeded"`
	Dead           int64 `json:"dead"`
	Canceled       int64 `json:"canceled"`
	FailedAttempts int64 `json:"failedAttempts" doc:"Attempts that failed, whether retried or not."`
	Requeued       int64 `json:"requeued" doc:"Dead jobs that were given new attempts."`
}

func metricsOf(m job.Metrics, minutes int) Metrics {
	return Metrics{
		At: m.At.UTC(), StatusCounts: everyState(m.Counts), ByWorker: orNone(m.ByWorker),
		AttemptDistribution: orNone(m.ByAttempts), ScheduledForRetry: m.Counts[job.Retry],
		Recent: Recent{
			SinceMinutes: minutes, Submitted: m.Recent.Submitted, Succeeded: m.Recent.Succeeded, Dead: m.Recent.Dead,
			Canceled: m.Recent.Canceled, FailedAttempts: m.Recent.Failed, Requeued: m.Recent.Requeued,
		},
		ProcessedLastMinute: m.ProcessedLastMinute, FailuresByJobType: orNone(m.FailuresByType),
		AvgDurationSecondsByJobType: seconds(m.AverageByType), Queues: queuesOf(m.Queues),
		OldestSnapshotSeconds: m.OldestSnapshot.Seconds(), SnapshotAgeTransactions: m.SnapshotAge,
	}
}

// everyState names also the states in which no job is.
func everyState(found map[job.State]int64) map[job.State]int64 {
	counts := make(map[job.State]int64, len(job.States()))
	for _, state := range job.States() {
		counts[state] = found[state]
	}
	return counts
}

func seconds(durations map[string]time.Duration) map[string]float64 {
	in := make(map[string]float64, len(durations))
	for name, d := range durations {
		in[name] = d.Seconds()
	}
	return in
}

type metricsInput struct {
	query
	SinceMinutes recentMinutes `query:"sinceMinutes" doc:"How far recent looks back; taken as 1 or 1440 when it lies outside."`
}

// recentMinutes is how far metrics look back.
type recentMinutes = clamped[ofADay]

type ofADay struct{ aDay }

func (ofADay) usual() int { return 5 }

type metricsOutput struct {
	Vary string `header:"Vary" doc:"Accept."`
	Body Metrics
}

// prometheusMedia are the formats that Prometheus asks for.
var prometheusMedia = []string{"text/plain", "application/openmetrics-text"}

func (s *service) addMetrics(routes huma.API, prometheus http.Handler) {
	huma.Register(routes, ownFormat(acrossTenants(scoped(guard.Operate, huma.Operation{
		OperationID: "get-metrics", Method: http.MethodGet, Path: "/metrics",
		Summary: "See how the whole system stands",
		Description: "JSON, or what Prometheus reads when the Accept header prefers text/plain or " +
			"application/openmetrics-text to it. sinceMinutes is for the JSON only.",
		Tags:        []string{"Operation"},
		Middlewares: huma.Middlewares{forPrometheus(prometheus)},
		Responses: map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{
			mediaJSON:    {},
			"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}},
		}}},
		// As for dead letters.
		SkipValidateParams: true,
	}))), s.metrics)
}

// forPrometheus hands over the requests that want its format.
func forPrometheus(prometheus http.Handler) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humachi.Unwrap(ctx)
		wanted := fondnessOf(r.Header, prometheusMedia...)
		switch {
		case !wanted.fonder(fondnessOf(r.Header, mediaJSON)):
			r.Header.Set("Accept", mediaJSON)
			next(ctx)
		case prometheus == nil:
			w.Header().Set("Vary", "Accept")
			writeProblem(w, http.StatusNotAcceptable, "only JSON is offered here")
		default:
			w.Header().Set("Vary", "Accept")
			prometheus.ServeHTTP(w, r)
		}
	}
}

// metrics computes the answer once for all who wait for it with the same
// window. It is no longer good when it has been given: whoever comes later
// gets another.
func (s *service) metrics(ctx context.Context, in *metricsInput) (*metricsOutput, error) {
	minutes := in.SinceMinutes.value()
	// Do, rather than DoChan, lets a panic reach the requests, not the program.
	shared, err, _ := s.measuring.Do(fmt.Sprint(minutes), func() (any, error) {
		// Not bound to the request that came first: others wait too.
		ctx, cancel := s.untilStopping(context.WithoutCancel(ctx), s.requestTimeout)
		defer cancel()
		return s.operations.Metrics(ctx, time.Duration(minutes)*time.Minute)
	})
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	return &metricsOutput{Vary: "Accept", Body: metricsOf(shared.(job.Metrics), minutes)}, nil
}
