package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

func TestTheAssemblyIsMeasured(t *testing.T) {
	cfg := defaults()
	url := databaseURL(storetest.URL(t))
	parts, err := assemble(t.Context(), cfg, url, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer parts.close()
	ctx, drain := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- parts.run(ctx, t.Context()) }()
	parts.observe("/jobs", "POST", 202, time.Millisecond)

	scrape := func() string {
		w := httptest.NewRecorder()
		parts.prometheus.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	require.Eventually(t, func() bool { // a worker that works reaps now and then
		return strings.Contains(scrape(), `holdfast_batch_duration_seconds_count{operation="reap"}`)
	}, 20*time.Second, 10*time.Millisecond)
	page := scrape()
	require.Contains(t, page, `holdfast_http_request_duration_seconds_count{method="POST",route="/jobs",status="2xx"} 1`)
	require.Contains(t, page, `holdfast_pool_connections_max{pool="work"} 20`)
	require.Contains(t, page, `service_instance_id="`+cfg.Worker.ID)
	drain()
	require.NoError(t, <-ran)
}
