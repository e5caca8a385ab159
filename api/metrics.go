package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

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
	Body v1.Metrics
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
	return &metricsOutput{Vary: "Accept", Body: v1.MetricsOf(shared.(job.Metrics), minutes)}, nil
}
