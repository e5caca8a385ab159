package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// stories are ways in which jobs can go. Each story runs with spans sent over gRPC and
// over HTTP.
var stories = map[string]func(t *testing.T, over string){
	"a job succeeds":                               succeeds,
	"a letter is sent":                             isALetter,
	"a job fails twice":                            failsTwice,
	"an attempt panics":                            panics,
	"an attempt times out":                         timesOut,
	"its handler is killed":                        handlerIsKilled,
	"its handler is killed and its lease runs out": leaseRunsOut,
	"its orchestrator is killed":                   orchestratorIsKilled,
	"its orchestrator stops":                       orchestratorStops,
	"its orchestrator sleeps and loses the lease":  leaseIsLost,
	"its orchestrator cannot prove the lease":      leaseIsNotProven,
	"a job is canceled while it runs":              isCanceled,
	"a job is canceled before it starts":           isCanceledWhileItWaits,
	"a job is held and released":                   isReleased,
	"a job passes a gate":                          passesAGate,
	"a job is edited and expires":                  isEditedAndExpires,
	"a job is kept out by another":                 isKeptOut,
	"a job is requeued":                            isRequeued,
	"a job is requeued with others":                isRequeuedWithOthers,
	"a job is one of a batch":                      isOneOfABatch,
	"a job is in the client's trace":               joinsTheClients,
	"a job's parent is not sampled":                isNotSampled,
	"a submission is refused":                      isRefused,
	"the database fails a request":                 requestFails,
}

// TestTraces runs all stories. All spans must be valid and documented in
// docs/reference/telemetry.md, and everything in its tables must be sent.
func TestTraces(t *testing.T) {
	t.Parallel()
	tables, err := documentation()
	require.NoError(t, err)
	var told atomic.Int32
	t.Cleanup(func() { // by then, all stories have ended
		if int(told.Load()) == 2*len(stories) {
			tables.everything(t)
		}
	})
	for _, over := range []string{"grpc", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			for name, tell := range stories {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					tell(t, over)
					told.Add(1)
				})
			}
		})
	}
}

// clients are the spans that tests use as parents.
var clients = []string{clientSpan, batchSpan}

// A stage is an orchestrator that sends its spans to a collector.
type stage struct {
	*rig.Orchestrator
	spans *collector.Collector
	url   string // of the database
}

// traced starts a stage with the test plugin. Their own spans go to the same collector.
func traced(t *testing.T, over string, settings ...string) *stage {
	t.Helper()
	spans := collector.Start(t)
	return tracedTo(t, spans, over, pgtest.URL(t),
		append(plugin(0, "shop", "testhandlers", "SPANS_TO="+spans.GRPC), settings...)...)
}

// tracedTo starts an orchestrator that sends spans over grpc or http. After the test,
// when the last spans are sent, it checks all of them.
func tracedTo(t *testing.T, spans *collector.Collector, over, url string, settings ...string) *stage {
	t.Helper()
	endpoint := map[string]string{"grpc": spans.GRPC, "http": spans.HTTP}[over]
	s := &stage{spans: spans, url: url}
	s.Orchestrator = orchestrator(t, url, append([]string{
		"tracing.endpoint=" + endpoint, "tracing.protocol=" + over, "worker.id=teller",
	}, settings...)...)
	rigtest.Start(t, s.Orchestrator)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if s.Running() {
			require.NoError(t, s.ShutDown(ctx))
		}
		tables, err := documentation()
		require.NoError(t, err)
		all := spans.Spans()
		collector.Sound(t, all, clients...)
		tables.look(t, all)
	})
	return s
}

// awaitThat waits until wanted accepts the spans.
func (s *stage) awaitThat(t *testing.T, wanted func([]collector.Span) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, err := s.spans.Await(ctx, wanted)
	require.NoError(t, err, "%s", collector.Tree(all, ""))
}

func (s *stage) awaitSpan(t *testing.T, name string) {
	t.Helper()
	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, name)) > 0 })
}

// withoutLookUps leaves out what an API does that is apart from the worker, when a type is submitted
// of which it has not read yet that it is declared: it asks the database, within the request.
func withoutLookUps(spans []collector.Span) []collector.Span {
	if !apart {
		return spans
	}
	return slices.DeleteFunc(slices.Clone(spans), func(span collector.Span) bool { return span.Name == "postgresql types" })
}

// story waits until the job's trace has that many spans of the name, and returns its
// spans.
func (s *stage) story(t *testing.T, id string, count int, name string) []collector.Span {
	t.Helper()
	var story []collector.Span
	s.awaitThat(t, func(all []collector.Span) bool {
		story = nil
		for _, span := range all {
			if strings.HasPrefix(span.Name, "send ") && span.Attributes["job.id"] == id {
				story = withoutLookUps(collector.OfTrace(all, span.Trace))
			}
		}
		return len(collector.Named(story, "POST /jobs")) == 1 && len(collector.Named(story, name)) == count
	})
	return story
}

// awaitHeartbeat waits for a heartbeat of the worker after it claimed the job.
func (s *stage) awaitHeartbeat(t *testing.T) {
	t.Helper()
	database, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(context.Background())) }()
	require.Eventually(t, func() bool {
		var heard bool
		err := database.QueryRow(t.Context(),
			"select bool_or(w.heartbeat_at > l.claimed_at) from workers w join leases l using (worker_id)").Scan(&heard)
		return err == nil && heard
	}, patience, glance)
}

// whereabouts is what operators see about a job's trace.
type whereabouts struct{ TraceID, TraceURL string }

func (s *stage) whereabouts(t *testing.T, id string) whereabouts {
	t.Helper()
	var told whereabouts
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &told))
	return told
}
