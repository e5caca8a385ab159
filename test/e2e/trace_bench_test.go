package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/blackhole"
	"github.com/holdfast-jobs/holdfast/test/collector"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// BenchmarkTracedJobs submits b.N jobs to the real program as one stream of lines and
// waits until they are done: without a collector, with one, and with one that accepts
// connections and never answers.
func BenchmarkTracedJobs(b *testing.B) {
	oneProcess(b, "it measures the memory of one process")
	for name, settings := range map[string]func() []string{
		"off":  func() []string { return nil },
		"live": func() []string { return []string{"tracing.endpoint=" + collector.Start(b).GRPC} },
		"dead": func() []string { return []string{"tracing.endpoint=" + "http://" + blackhole.Listen(b)} },
	} {
		b.Run(name, func(b *testing.B) {
			url := pgtest.URL(b)
			db := pool(b, url)
			o := orchestrator(b, url, append(plugin(0, "shop", "testhandlers"),
				append(settings(), "rate_limit.enabled=false", "plugins.0.concurrency=200")...)...)
			rigtest.Start(b, o)
			lines := strings.Repeat(`{"jobType":"WORK","payload":{}}`+"\n", b.N)
			b.ResetTimer()
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPost,
				"http://"+o.Address+"/jobs/batch?atomic=false", strings.NewReader(lines))
			require.NoError(b, err)
			request.SetBasicAuth("admin", o.Password)
			request.Header.Set("Content-Type", "application/x-ndjson")
			response, err := http.DefaultClient.Do(request)
			require.NoError(b, err)
			_, err = io.Copy(io.Discard, response.Body)
			require.NoError(b, err)
			require.NoError(b, response.Body.Close())
			awaitEnd(b, db)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			process, err := procfs.NewProc(o.PID())
			require.NoError(b, err)
			status, err := process.NewStatus()
			require.NoError(b, err)
			b.ReportMetric(float64(status.VmHWM)/(1<<20), "peak-MiB")
			require.Equal(b, b.N, count(b, db, `select count(*) from jobs where state = 'succeeded'`))
			require.NoError(b, o.ShutDown(context.WithoutCancel(b.Context())))
		})
	}
}
