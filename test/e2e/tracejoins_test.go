package e2e

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/jobtrace"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// These are the spans of clients, and the trace of one of them.
const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
	batchSpan   = "00000000000000aa"
)

func isOneOfABatch(t *testing.T, over string) {
	s := traced(t, over)
	one := `{"jobType":"TRACE","payload":{}}`
	keyed := strings.Replace(one, "{", `{"idempotencyKey":"k",`, 1)
	for name, batch := range map[string]struct{ path, body, media, within string }{
		"whole": {"/jobs/batch", "[" + one + "," + one + "," + one + "]", "application/json", "  postgresql submit_unkeyed\n"},
		"keyed": {"/jobs/batch", "[" + keyed + "," + one + "," + one + "]", "application/json", "  postgresql begin\n  postgresql submit\n  postgresql commit\n"},
		"each":  {"/jobs/batch?atomic=false", "[" + one + "," + one + "," + one + "]", "application/json", ""},
		"lines": {"/jobs/batch?atomic=false", one + "\n" + one + "\n" + one + "\n", "application/x-ndjson", ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := hex.EncodeToString([]byte("the client  " + name)[:16])
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Address+batch.path, strings.NewReader(batch.body))
			require.NoError(t, err)
			request.SetBasicAuth("admin", s.Password)
			request.Header.Set("Content-Type", batch.media)
			request.Header.Set("Traceparent", "00-"+client+"-"+batchSpan+"-01")
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			answer, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Less(t, response.StatusCode, 300, "%s", answer)

			var ofRequest []collector.Span
			var runs []collector.Span
			s.awaitThat(t, func(all []collector.Span) bool {
				runs = nil
				ofRequest = withoutLookUps(collector.OfTrace(all, client))
				for _, send := range collector.Named(all, "send TRACE") {
					if len(ofRequest) > 0 && len(send.Links) == 1 && send.Links[0].Span == ofRequest[0].ID {
						runs = append(runs, collector.Named(collector.OfTrace(all, send.Trace), "process TRACE")...)
					}
				}
				return len(runs) == 3
			})
			require.Equal(t, "POST /jobs/batch\n"+batch.within, collector.Tree(ofRequest, batchSpan))
			require.Less(t, ofRequest[0].End.Sub(ofRequest[0].Start), patience)
			traces := make(map[string]bool)
			for _, run := range runs {
				traces[run.Trace] = true
				story := collector.OfTrace(s.spans.Spans(), run.Trace)
				jobtrace.OfABatch(t, story, ofRequest[0])
			}
			require.Len(t, traces, 3)
		})
	}
}

func joinsTheClients(t *testing.T, over string) {
	s := traced(t, over)
	s.Header = http.Header{
		"Traceparent": {"00-" + clientTrace + "-" + clientSpan + "-01"}, "Tracestate": {"vendor=blue"},
		"Baggage": {"customer=ada, order = 7;urgent"},
	}
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	s.Header = nil
	ended := rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	story := s.story(t, id, 1, "process TRACE")
	require.Equal(t, jobtrace.AtOnce, collector.Tree(story, clientSpan))
	require.Equal(t, clientTrace, story[0].Trace)
	var given struct{ Traceparent, Tracestate, Baggage string }
	require.NoError(t, json.Unmarshal(ended.Result, &given))
	require.Equal(t, "00-"+clientTrace+"-"+jobtrace.Process(t, story, 1).ID+"-01", given.Traceparent)
	require.Equal(t, "vendor=blue", given.Tracestate)
	require.Equal(t, "customer=ada,order = 7;urgent", given.Baggage)
	require.NotContains(t, collector.Text(story), "customer")
}

func isNotSampled(t *testing.T, over string) {
	s := traced(t, over, "tracing.trace_url_template=http://localhost:16686/trace/{trace_id}")
	unsampled := "00-" + clientTrace + "-" + clientSpan + "-00"
	for _, sent := range []string{unsampled, "cc" + unsampled[2:] + "-of-the-future"} {
		s.Header = http.Header{"Traceparent": {sent}, "Tracestate": {"vendor=blue"}}
		id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{"failFirst": 1}})
		ended := rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
		var given struct{ Traceparent, Tracestate, Baggage string }
		require.NoError(t, json.Unmarshal(ended.Result, &given))
		require.Equal(t, unsampled, given.Traceparent)
		require.Equal(t, "vendor=blue", given.Tracestate)
		require.Equal(t, whereabouts{TraceID: clientTrace}, s.whereabouts(t, id), "nothing of ours is to be seen there")
	}
	s.Header = nil
	other := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	s.story(t, other, 1, "process TRACE")
	require.Empty(t, collector.OfTrace(s.spans.Spans(), clientTrace))
}

func isRefused(t *testing.T, over string) {
	s := traced(t, over)
	for millis, status := range []int{http.StatusAccepted, http.StatusUnprocessableEntity} {
		again := rig.Submission{JobType: "TRACE", Payload: map[string]any{"millis": millis}, IdempotencyKey: "the same"}
		require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs", again, status, nil))
	}
	s.awaitThat(t, func(all []collector.Span) bool { return len(collector.Named(all, "send TRACE")) == 2 })
	refused := collector.Named(s.spans.Spans(), "send TRACE")[1]
	require.True(t, refused.Failed)
	require.Equal(t, "key_reused", refused.Attributes["error.type"])
	require.NotContains(t, refused.Attributes, "job.id")
}

// requestFails renames the view that a request needs for a while, so that the request
// fails.
func requestFails(t *testing.T, over string) {
	s := traced(t, over)
	id := rigtest.Submit(t, s.Orchestrator, rig.Submission{JobType: "TRACE", Payload: map[string]any{}})
	rigtest.Await(t, s.Orchestrator, id, "COMPLETED")
	database, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(t.Context())) }()
	_, err = database.Exec(t.Context(), "alter view current_jobs rename to jobs_that_were")
	require.NoError(t, err)
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/jobs/"+id, nil, http.StatusInternalServerError, nil))
	_, err = database.Exec(t.Context(), "alter view jobs_that_were rename to current_jobs")
	require.NoError(t, err)

	var request, statement collector.Span
	s.awaitThat(t, func(all []collector.Span) bool {
		for _, span := range all {
			switch {
			case span.Failed && span.Name == "GET /jobs/{id}":
				request = span
			case span.Failed && strings.HasPrefix(span.Name, "postgresql "):
				statement = span
			}
		}
		return request.ID != "" && statement.ID != ""
	})
	require.Equal(t, request.ID, statement.Parent)
	require.Subset(t, request.Attributes, map[string]any{"error.type": "500", "http.response.status_code": int64(500), "job.id": id})
	require.Subset(t, statement.Attributes, map[string]any{"error.type": "42P01", "db.response.status_code": "42P01"})
	require.Empty(t, statement.Status, "the database's own words may have values in them")
}
