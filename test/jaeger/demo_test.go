package jaeger

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/collector"
)

// The demo's FAIL_JOB has three attempts, and after the requeue three more.
const failedAndRequeued = `POST /jobs
  send FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
    retry wait FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
    retry wait FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
    requeue FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
    retry wait FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
    retry wait FAIL_JOB
    queue wait FAIL_JOB
    process FAIL_JOB
`

func TestTheDemoCanBeReadInJaeger(t *testing.T) {
	need(t)
	service := "holdfast-demo-" + strings.ToLower(rand.Text()[:8])
	demo := exec.CommandContext(t.Context(), filepath.Join(bin, "demo"), "-bin", bin)
	demo.Env = append(os.Environ(), "OTEL_SERVICE_NAME="+service,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+taker, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "HOLDFAST_TRACING__PLUGINS=true")
	said, err := demo.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, services(t), service)

	failed := found(t, service, "send FAIL_JOB", complete(6, "process FAIL_JOB"))
	require.Equal(t, failedAndRequeued, collector.Tree(failed, ""))
	request := collector.Named(failed, "requeue FAIL_JOB")[0].Links[0].Trace
	sound(t, append(failed, told(t, request, complete(1, "POST /jobs/{id}/requeue"))...))

	mail := found(t, service, "send SEND_EMAIL", complete(1, "process SEND_EMAIL"))
	require.True(t, strings.HasPrefix(collector.Tree(mail, ""),
		"POST /jobs\n  send SEND_EMAIL\n    queue wait SEND_EMAIL\n    process SEND_EMAIL\n"), collector.Tree(mail, ""))
	sound(t, mail)

	// The plugin process is killed soon afterwards, and the spans that it has not sent are lost.
	called := found(t, service, "send HTTP_REQUEST", complete(100, "POST /jobs", "process HTTP_REQUEST"))
	sound(t, called)
	called = slices.DeleteFunc(called, func(span collector.Span) bool { return span.Name == "GET" })
	require.Equal(t, strings.Repeat(
		"POST /jobs\n  send HTTP_REQUEST\n    queue wait HTTP_REQUEST\n    process HTTP_REQUEST\n", 100), collector.Tree(called, ""))

	// Spans that a killed orchestrator has not sent are lost, except those of its running
	// attempts: the orchestrator that takes over the jobs reports them.
	slept := found(t, service, "process SLEEP_JOB", func(spans []collector.Span) bool {
		runs := collector.Named(spans, "process SLEEP_JOB")
		return len(interrupted(runs)) >= 10 && !slices.ContainsFunc(interrupted(runs), func(run collector.Span) bool { return !continued(runs, run) })
	})
	for _, run := range interrupted(slept) {
		require.Subset(t, run.Attributes, map[string]any{"job.outcome": "interrupted", "job.crashed": true})
	}
	killed := collector.Named(slept, "process SLEEP_JOB")
	killed = slices.DeleteFunc(killed, func(run collector.Span) bool {
		return run.Attributes["job.crashed"] != true || run.Attributes["job.reaped_by"] != nil
	})
	require.NotEmpty(t, killed, "a plugin process was killed as well")
}

// interrupted are the attempts that another worker has reported.
func interrupted(runs []collector.Span) []collector.Span {
	return slices.DeleteFunc(slices.Clone(runs), func(run collector.Span) bool { return run.Attributes["job.reaped_by"] == nil })
}

// continued reports whether another attempt is linked to the run.
func continued(runs []collector.Span, run collector.Span) bool {
	return slices.ContainsFunc(runs, func(next collector.Span) bool {
		return len(next.Links) == 1 && next.Links[0].Span == run.ID && next.Trace == run.Trace
	})
}
