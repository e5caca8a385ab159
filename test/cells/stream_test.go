package cells

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const lines = "application/x-ndjson"

// Each line is answered before the next one is sent, so a proxy that keeps requests or
// answers back would never end this test.
func TestHAProxyCarriesLinesAndAnswersBothWays(t *testing.T) {
	cells := start(t)
	body, sending := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+behind(t, "HAProxy", addresses(cells))+"/jobs/batch?atomic=false", body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", lines)
	request.SetBasicAuth("admin", password)
	go func() { _, _ = io.WriteString(sending, echo+"\n") }()
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	answers := bufio.NewScanner(response.Body)
	for range 20 {
		require.True(t, answers.Scan(), answers.Err())
		require.Contains(t, answers.Text(), `"job"`)
		_, err := io.WriteString(sending, echo+"\n")
		require.NoError(t, err)
	}
	require.NoError(t, sending.Close())
	var rest []string
	for answers.Scan() {
		rest = append(rest, answers.Text())
	}
	require.NoError(t, answers.Err())
	require.Len(t, rest, 2)
	require.JSONEq(t, `{"done":true,"accepted":21,"refused":0}`, rest[1])
}

// manyLines is longer than server.max_batch_bytes. All lines are refused, so that they make
// no jobs.
var manyLines = strings.Repeat(`{"jobType":"NOBODYS_JOB","payload":"`+strings.Repeat("x", 1<<20-100)+`"}`+"\n", 33)

func TestHAProxyCarriesABatchOfLinesOfAnyLength(t *testing.T) {
	cells := start(t)
	ask := asking(t, behind(t, "HAProxy", addresses(cells)))
	got := ask(200, "POST", "/jobs/batch?atomic=false", manyLines, "Content-Type", lines)
	require.Contains(t, string(got.body), `{"done":true,"accepted":0,"refused":33}`)
}

func TestNginxRefusesABatchThatItWouldNotSendWhole(t *testing.T) {
	cells := start(t)
	ask := asking(t, behind(t, "nginx", addresses(cells)))
	for _, query := range []string{"?atomic=false", "?atomic=0", "?atomic=F"} {
		got := ask(421, "POST", "/jobs/batch"+query, echo+"\n", "Content-Type", lines+"; charset=utf-8")
		require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
		require.Contains(t, string(got.body), "nginx cannot carry a batch of lines with atomic=false")
	}
	require.Empty(t, cells[0].jobs(t))
	require.Empty(t, cells[1].jobs(t))
	ask(202, "POST", "/jobs/batch", echo+"\n"+echo+"\n", "Content-Type", lines)
	ask(200, "POST", "/jobs/batch?atomic=false", "["+echo+"]")
}

func TestABodyThatIsTooLargeIsRefusedAsAProblem(t *testing.T) {
	cells := start(t)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			got := asking(t, behind(t, name, addresses(cells)))(413, "POST", "/jobs", manyLines)
			require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
			require.Contains(t, string(got.body), `"status":413`)
		})
	}
}
