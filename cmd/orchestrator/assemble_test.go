package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestTheAssemblyHasMetrics(t *testing.T) {
	cfg := config.Defaults()
	url := config.DatabaseURL(pgtest.URL(t))
	parts, err := assemble(t.Context(), cfg, url, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer parts.close(t.Context())
	ctx, drain := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- parts.run(ctx, t.Context()) }()
	parts.api.Observe("/jobs", "POST", 202, time.Millisecond)

	scrape := func() string {
		w := httptest.NewRecorder()
		parts.api.Prometheus.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	require.Eventually(t, func() bool { // a worker that works reaps now and then
		return strings.Contains(scrape(), `holdfast_batch_duration_seconds_count{operation="reap"}`)
	}, longWait, 10*time.Millisecond)
	page := scrape()
	require.Contains(t, page, `holdfast_http_request_duration_seconds_count{method="POST",route="/jobs",status="2xx"} 1`)
	require.Contains(t, page, `holdfast_pool_connections_max{pool="worker"} 8`)
	require.Contains(t, page, `service_instance_id="`+cfg.Worker.ID)
	drain()
	require.NoError(t, <-ran)
}

func TestTheConfiguredCommitOfATypeApplies(t *testing.T) {
	url := pgtest.URL(t) + "&synchronous_commit=on" // the tests' own server has it off
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), `
		create table commits (job_type text, setting text);
		create function watch_commit() returns trigger language plpgsql as $$
			begin
				insert into commits values (new.job_type, current_setting('synchronous_commit'));
				return null;
			end $$;
		create trigger watch_commit after insert on jobs for each row execute function watch_commit()`)
	require.NoError(t, err)
	cfg := config.Defaults()
	quick := config.Fast
	cfg.Jobs.Types = map[string]config.Type{"QUICK": {Commit: &quick}}
	parts, err := assemble(t.Context(), cfg, config.DatabaseURL(url), nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer parts.close(t.Context())

	submission := func(jobType string) job.Submission {
		id, err := uuid.NewV7()
		require.NoError(t, err)
		return job.Submission{
			ID: job.ID(id), Type: jobType, Tenant: job.DefaultTenant, Payload: []byte("null"), MaxAttempts: 1, Timeout: time.Second,
		}
	}
	for _, jobType := range []string{"QUICK", "SAFE"} {
		_, err := parts.api.Jobs.Submit(t.Context(), submission(jobType))
		require.NoError(t, err)
		_, err = parts.api.Jobs.SubmitAll(t.Context(), []job.Submission{submission(jobType), submission(jobType)})
		require.NoError(t, err)
	}
	rows, err := conn.Query(t.Context(), "select job_type || ' ' || setting || ' ' || count(*) from commits group by job_type, setting order by 1")
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"QUICK off 3", "SAFE on 3"}, found)
}
