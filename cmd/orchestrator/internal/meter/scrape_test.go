package meter

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// lines keeps what is logged.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(line))
	return len(line), nil
}

func TestAScrapeThatTheClientBreaksOffIsOneLineAndNoWarning(t *testing.T) {
	logged := &lines{}
	m, err := New(Identity{Worker: "test"}, slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	asked, left := make(chan struct{}), make(chan (<-chan struct{}), 1)
	require.NoError(t, m.Watch(Sources{
		Plugins: somePlugins, Pools: somePools, Replica: someReplica, TypeLabel: onlyMail,
		Ledger: func(context.Context, time.Duration) (v1.Metrics, error) {
			close(asked)
			<-<-left // answers when the client has gone
			return someMetrics(), nil
		},
	}))
	served := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		left <- r.Context().Done()
		m.Handler().ServeHTTP(w, r)
	}))
	defer server.Close()

	client, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprintf(client, "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
	require.NoError(t, err)
	<-asked
	require.NoError(t, client.(*net.TCPConn).SetLinger(0)) // reset, so that the answer cannot be written
	require.NoError(t, client.Close())
	<-served
	logged.mu.Lock()
	defer logged.mu.Unlock()
	require.Len(t, logged.all, 1)
	require.Contains(t, logged.all[0], `level=DEBUG msg="metrics not sent"`)
}

func TestEveryMetricOfACellNamesIt(t *testing.T) {
	for _, cell := range []job.Cell{{}, job.CellOf(0), job.CellOf(3)} {
		m, err := New(Identity{Worker: "worker-1", Cell: cell}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		m.Request("/jobs", "POST", 202, time.Millisecond)
		found := families(t, m)
		require.Contains(t, found, "holdfast_http_request_duration_seconds")
		require.Contains(t, found, "go_goroutines")
		for name, family := range found {
			for _, sample := range family.GetMetric() {
				has := ""
				for _, label := range sample.GetLabel() {
					if label.GetName() == "cell" {
						has = label.GetValue()
					}
				}
				require.Equal(t, cell.String(), has, name)
			}
		}
	}
}
