// Package bench_test compares submissions that share commits with submissions that
// have a commit each, in turns within one run (make bench-submit). It never fails
// because a machine is slow.
package bench_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/migrations"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/embedded"
)

const (
	rounds     = 5
	roundTakes = 2 * time.Second
)

// BenchmarkSubmit compares submissions over HTTP that share commits with
// submissions that have a commit each, on a PostgreSQL with the durability of
// the real thing. Rounds of the two alternate; the figures are medians, in
// requests a second and in milliseconds.
func BenchmarkSubmit(b *testing.B) {
	ledger := openLedger(b)
	worker := work(b, ledger)
	each := commitEach{store: ledger, worker: worker}
	grouped, single := serve(b, group{each}), serve(b, each)
	for _, clients := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var together, apart []measurement
			warmUp := roundTakes / 4
			load(b, grouped, clients, warmUp)
			load(b, single, clients, warmUp)
			b.ResetTimer()
			for range rounds {
				together = append(together, load(b, grouped, clients, roundTakes))
				apart = append(apart, load(b, single, clients, roundTakes))
			}
			b.StopTimer()
			of, alone := median(together), median(apart)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(of.rate, "grouped/s")
			b.ReportMetric(alone.rate, "commit-each/s")
			b.ReportMetric(of.rate/alone.rate, "ratio")
			b.ReportMetric(of.typical.Seconds()*1000, "grouped-p50-ms")
			b.ReportMetric(alone.typical.Seconds()*1000, "commit-each-p50-ms")
		})
	}
}

type measurement struct {
	rate    float64 // answers a second
	typical time.Duration
}

func median(of []measurement) measurement {
	slices.SortFunc(of, func(a, b measurement) int { return int(a.rate - b.rate) })
	return of[len(of)/2]
}

// commitEach stores every submission by itself, and says so to the claimers.
type commitEach struct {
	api.Jobs
	store  *store.Store
	worker *runtime.Runtime
}

func (c commitEach) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	submitted := c.store.Submit(ctx, []job.Submission{s})[0]
	c.worker.Hints.Announce(job.JobsReady)
	return submitted.Receipt, submitted.Err
}

func (commitEach) TypeSpec(_ context.Context, jobType string) (job.TypeSpec, error) {
	return job.TypeSpec{Type: jobType, MaxAttempts: 4, Timeout: time.Minute}, nil
}

// group stores submissions together, as the orchestrator does.
type group struct{ commitEach }

func (g group) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	return g.worker.Submit(ctx, s)
}

// work runs an orchestrator without handlers until the benchmark ends.
func work(b *testing.B, ledger *store.Store) *runtime.Runtime {
	b.Helper()
	worker, err := runtime.New(runtime.Config{
		Config: jobs.Config{
			PollInterval: time.Second, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
			Resolve: func(spec job.TypeSpec) job.TypeSpec { return spec },
		},
		Worker: runtime.NewWorker("bench", job.AllRoles()), Concurrency: 1, Lease: 30 * time.Second,
		DrainTimeout: time.Second, KillGrace: time.Second, JobLog: runtime.LogNone,
		CrashPolicy: runtime.Expire, MaxCrashes: func(string) int { return job.DefaultMaxCrashes },
	}, ledger, noHandlers{})
	require.NoError(b, err)
	require.NoError(b, worker.Prepare(b.Context()))
	ctx, stop := context.WithCancel(b.Context())
	var ran sync.WaitGroup
	ran.Go(func() { worker.Run(ctx, context.Background()) })
	b.Cleanup(func() { stop(); ran.Wait() })
	return worker
}

// noHandlers serves nothing: what is submitted stays queued.
type noHandlers struct{ runtime.Plugins }

func (noHandlers) Pools() []job.Pool        { return nil }
func (noHandlers) Types() []job.TypeSpec    { return nil }
func (noHandlers) Changed() <-chan struct{} { return nil }

// openLedger opens an empty ledger in a server that commits durably.
func openLedger(b *testing.B) *store.Store {
	b.Helper()
	// Not the benchmark's own directory: where PostgreSQL must not run as root,
	// its user could not get there, and the data would go elsewhere and stay.
	directory, err := os.MkdirTemp("", "holdfast-bench-")
	require.NoError(b, err)
	b.Cleanup(func() { _ = os.RemoveAll(directory) })
	require.NoError(b, os.Chmod(directory, 0o755))
	server, err := embedded.Start(b.Context(), embedded.Config{DataDir: filepath.Join(directory, "postgres"), Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Stop(context.Background())) })
	db, err := sql.Open("pgx", server.URL())
	require.NoError(b, err)
	_, err = migrations.Up(b.Context(), db)
	require.NoError(b, err)
	require.NoError(b, db.Close())
	ledger, err := store.Open(b.Context(), store.Config{URL: server.URL(), MaxConnections: 20})
	require.NoError(b, err)
	b.Cleanup(ledger.Close)
	return ledger
}

// serve returns the address of an API over the jobs.
func serve(b *testing.B, jobs api.Jobs) string {
	b.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: api.New(api.Config{
		Jobs: jobs, Log: slog.New(slog.DiscardHandler), Version: "bench",
		MaxBodyBytes: api.DefaultMaxBodyBytes, RequestTimeout: api.DefaultRequestTimeout,
	})}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

const body = `{"jobType":"NOTHING","payload":{"to":"ada@example.com"}}`

// load sends submissions over so many connections, each waiting for its
// answer, for a time. The clients are as lean as they can be: they share the
// machine with what they measure.
func load(b *testing.B, address string, clients int, takes time.Duration) measurement {
	b.Helper()
	request := []byte("POST /jobs HTTP/1.1\r\nHost: " + address +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	var answers atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	began := time.Now()
	for range clients {
		all.Go(func() {
			times, err := client(address, request, began.Add(takes))
			answers.Add(int64(len(times)))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, times...)
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	if len(took) == 0 {
		b.Fatal("no answer")
	}
	slices.Sort(took)
	return measurement{rate: float64(answers.Load()) / time.Since(began).Seconds(), typical: took[len(took)/2]}
}

// client sends the request again and again, and returns how long each answer
// took.
func client(address string, request []byte, until time.Time) ([]time.Duration, error) {
	conn, err := (&net.Dialer{}).Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	answers := bufio.NewReader(conn)
	var took []time.Duration
	for time.Now().Before(until) {
		sent := time.Now()
		if _, err := conn.Write(request); err != nil {
			return took, err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return took, err
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return took, err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusAccepted {
			return took, fmt.Errorf("answered %s", answer.Status)
		}
		took = append(took, time.Since(sent))
	}
	return took, nil
}
