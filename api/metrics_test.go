package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Accept headers as these programs send them.
const (
	prometheusAccept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
	prometheus3      = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
	browserAccept    = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
)

func TestMetricsAreJSONUnlessTextIsPreferred(t *testing.T) {
	for accept, prometheus := range map[string]bool{
		"":                                    false,
		"*/*":                                 false,
		"application/json":                    false,
		"application/json, text/plain, */*":   false,
		"application/json;q=0.5, text/plain":  true,
		"application/json, text/plain;q=0.9":  false,
		"application/*, text/plain":           true,
		"text/plain":                          true,
		"TEXT/Plain; charset=utf-8":           true,
		"text/*":                              true,
		"text/plain, */*":                     true,
		"*/*, text/plain;q=0.5":               true, // ranges are not weighed
		"text/plain;q=0":                      false,
		"text/plain;q=0, */*":                 false,
		"text/plain;q=2, */*;q=0.1":           true,
		"text/plain;q=x, */*;q=0.1":           false,
		"application/openmetrics-text":        true,
		"application/openmetrics-text;q=0.01": true,
		"image/png":                           false,
		"no sense; at all=\", text/plain":     true,
		prometheusAccept:                      true,
		prometheus3:                           true,
		browserAccept:                         false,
	} {
		h := newMeteredAPI(newLedger(), func(r *http.Request) { require.Equal(t, accept, r.Header.Get("Accept")) })
		answer := send(h, "GET", "/metrics?sinceMinutes=7", "", "Accept: "+accept)
		require.Equal(t, 200, answer.Code, accept)
		require.Equal(t, "Accept", answer.Header().Get("Vary"))
		if prometheus {
			require.Equal(t, "# metrics\n", answer.Body.String(), accept)
		} else {
			require.Equal(t, "application/json", answer.Header().Get("Content-Type"), accept)
		}
	}
}

func newMeteredAPI(l *ledger, asked func(*http.Request)) http.Handler {
	return api.New(api.Config{
		Jobs: l, Operations: l, Rules: l, Retention: l, Bulk: l, Schedules: l, Workflows: l, AllPlugins: l, Log: slog.New(slog.DiscardHandler), Version: "test", RequestTimeout: time.Minute,
		Prometheus: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked(r)
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "# metrics\n")
		}),
	})
}

func TestSeveralAcceptHeadersAreOne(t *testing.T) {
	h := newMeteredAPI(newLedger(), func(*http.Request) {})
	answer := send(h, "GET", "/metrics", "", "Accept: */*;q=0.1", "Accept: text/plain")
	require.Equal(t, "# metrics\n", answer.Body.String())
}

func TestMediaTypesThatAreNotOfferedAreRefused(t *testing.T) {
	answer := send(newAPI(t, newLedger()), "GET", "/metrics", "", "Accept: text/plain")
	requireGolden(t, "metrics-no-prometheus", transcript(answer))
}

func TestPrometheusNeedsTheScopeToo(t *testing.T) {
	server, _ := guarded(t, guard.Config{Access: accessFor(false)})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/metrics", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/plain")
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 401, answer.StatusCode)
}

func TestRequestsThatWaitForTheSameMetricsShareThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		meter := hold(l)
		h := newAPI(t, l)
		const many = 5
		statuses := make(chan int, many+1)
		ask := func(path string) { statuses <- send(h, "GET", path, "").Code }
		for range many {
			go ask("/metrics?sinceMinutes=7")
		}
		go ask("/metrics?sinceMinutes=8")
		synctest.Wait()
		require.Len(t, meter.begun, 2, "once for each window")
		close(meter.goOn)
		for range many + 1 {
			require.Equal(t, 200, <-statuses)
		}
		ask("/metrics?sinceMinutes=7")
		require.Len(t, meter.begun, 3, "nothing is kept")
	})
}

func TestMetricsAreAnsweredEvenIfTheFirstRequestEnds(t *testing.T) {
	l := newLedger()
	meter := hold(l)
	h := newAPI(t, l)
	first, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		request, _ := http.NewRequestWithContext(first, http.MethodGet, "/metrics", nil)
		h.ServeHTTP(&sink{header: http.Header{}}, request)
	}()
	working := <-meter.begun
	leave()
	require.NoError(t, working.Err())
	close(meter.goOn)
	<-done
}

func TestAPanicBehindMetricsIsAnAnswer(t *testing.T) {
	l := newLedger()
	l.looking = func(context.Context) error { panic("secret detail") }
	h := newAPI(t, l)
	for range 2 {
		answer := send(h, "GET", "/metrics", "")
		require.Equal(t, 500, answer.Code)
		require.NotContains(t, answer.Body.String(), "secret")
	}
}

func TestMetricsThatFailAreNotKeptEither(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	for err, want := range map[error]int{job.ErrUnavailable: 503, errors.New("secret detail"): 500, nil: 200} {
		l.fails = err
		require.Equal(t, want, send(h, "GET", "/metrics", "").Code)
	}
}
