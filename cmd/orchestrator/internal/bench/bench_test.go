package bench

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestFiguresSummarizeAllRuns(t *testing.T) {
	var s Scenario
	for _, value := range []float64{3, 1, 2} {
		s.add("case", "rate", "jobs/s", value)
	}
	s.add("case", "WAL", "bytes/job", 10)
	s.add("case", "WAL", "bytes/job", 20)
	require.Equal(t, []*Case{{Name: "case", Figures: []*Figure{
		{Name: "rate", Unit: "jobs/s", Values: []float64{3, 1, 2}, Min: 1, Median: 2, Max: 3},
		{Name: "WAL", Unit: "bytes/job", Values: []float64{10, 20}, Min: 10, Median: 15, Max: 20},
	}}}, s.Cases)
}

func TestPercentilesAreMeasuredValues(t *testing.T) {
	sorted := make([]time.Duration, 100)
	for i := range sorted {
		sorted[i] = time.Duration(i + 1)
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.01: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		require.Equal(t, want, percentile(sorted, share), share)
	}
	require.Zero(t, percentile(nil, 0.5))
}

func TestRoundedKeepsThreeDigits(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.01234: "0.012", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 12345.6: "12,346"} {
		require.Equal(t, want, rounded(value))
	}
}

func TestUsageCountsEndedChildren(t *testing.T) {
	before, err := usageOf(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	burn := exec.CommandContext(t.Context(), "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	require.NoError(t, burn.Run())
	after, err := usageOf(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, after.below-before.below, burn.ProcessState.UserTime()-2*tick)
}

const tick = 10 * time.Millisecond

func TestACallerReadsAnyAnswer(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/chunked":
			_, _ = io.WriteString(w, long)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "end")
		case "/refused":
			w.WriteHeader(http.StatusTeapot)
		default:
			_, _ = w.Write(body)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	c, err := call(address)
	require.NoError(t, err)
	defer c.close()
	for range 2 { // The connection can be used again.
		answer, err := c.do(request(address, "POST", "/echo", "text/plain", []byte("hello")))
		require.NoError(t, err)
		require.Equal(t, "hello", string(answer))
		answer, err = c.do(request(address, "GET", "/chunked", "", nil))
		require.NoError(t, err)
		require.Equal(t, long+"end", string(answer))
		_, err = c.do(request(address, "GET", "/refused", "", nil))
		require.ErrorContains(t, err, "418")
	}
}

func TestACrowdSendsTheGivenNumberOfRequests(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, `{"jobId":"`+strings.Repeat("a", jobIDLength)+`"}`)
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	by := crowd{address: address, clients: 7, requests: Keys{Number: 3, Limit: 1}.singles(address, noop), jobs: true}
	got, err := by.flatOut(t.Context(), 100)
	require.NoError(t, err)
	require.Len(t, got.took, 100)
	require.EqualValues(t, 100, requests.Load())
	require.Contains(t, got.due, strings.Repeat("a", jobIDLength))

	steady, err := by.steadily(t.Context(), 1000, 100*time.Millisecond)
	require.NoError(t, err)
	require.Len(t, steady.took, 100, "1000 per second for a tenth of a second, however slow the answers are")
}

func TestACrowdEndsWithTheFirstError(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, err = crowd{address: listener.Addr().String(), clients: 3}.flatOut(t.Context(), 10)
	require.ErrorContains(t, err, "refused")
}

func TestAnUnknownScenarioIsAnErrorThatNamesTheKnownOnes(t *testing.T) {
	_, err := Run(context.Background(), Config{}, []string{"nonsense"})
	require.ErrorIs(t, err, ErrNoScenario)
	require.ErrorContains(t, err, "workoff")
}

func TestEachRunHasADatabaseOfItsOwn(t *testing.T) {
	for _, given := range []string{
		"postgres://me@host/prod", "postgres://me@host:1/?dbname=prod&sslmode=disable", "postgresql://me@/prod?host=/run&database=prod",
	} {
		address, err := url.Parse(given)
		require.NoError(t, err)
		config, err := pgx.ParseConfig((&cluster{url: address}).addressOf("mine"))
		require.NoError(t, err)
		require.Equal(t, "mine", config.Database, given)
	}
}

func TestBatchesHaveSoManyJobsAndAllKeys(t *testing.T) {
	for _, c := range []struct{ keys, size, batches int }{{0, 500, 1}, {0, 3, 1}, {7, 3, 3}, {6, 3, 2}, {2, 5, 1}} {
		all := Keys{Number: c.keys}.batches("127.0.0.1:1", noop, c.size)
		require.Len(t, all, c.batches, "%+v", c)
		seen := map[string]bool{}
		for _, batch := range all {
			_, body, _ := strings.Cut(string(batch), "\r\n\r\n")
			lines := strings.Split(strings.TrimSpace(body), "\n")
			require.Len(t, lines, c.size, "%+v", c)
			for _, line := range lines {
				seen[line] = true
			}
		}
		require.Len(t, seen, max(c.keys, 1), "%+v", c)
	}
}

func TestAFleetHasTypesForAllPlugins(t *testing.T) {
	right := Fleet{Sizes: []int{2, 50}, Processes: 1, Rate: 500, Types: 50, Plugins: 50}
	require.NoError(t, right.Validate())
	for want, change := range map[string]func(*Fleet){
		"--orchestrators: each number": func(f *Fleet) { f.Sizes = nil },
		"--orchestrators":              func(f *Fleet) { f.Sizes = []int{2, 0} },
		"--processes must be":          func(f *Fleet) { f.Processes = 0 },
		"--rate must be":               func(f *Fleet) { f.Rate = 0 },
		"--types and --plugins":        func(f *Fleet) { f.Types = 0 },
		"--plugins at most --types":    func(f *Fleet) { f.Plugins = 51 },
	} {
		wrong := right
		change(&wrong)
		require.ErrorContains(t, wrong.Validate(), want)
	}
}

func TestAFleetSharesItsProcessesEvenly(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	require.Equal(t, [][]string{five}, shared(five, 1))
	require.Equal(t, [][]string{{"a"}, {"b"}, {"c"}, {"d", "e"}}, shared(five, 4))
	require.Equal(t, [][]string{{"a"}, {"b"}}, shared(five[:2], 4))
}
