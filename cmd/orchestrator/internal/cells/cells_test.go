package cells

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client of servers that the handlers serve, each of the cell of its index.
func client(t *testing.T, numbered bool, handlers ...http.HandlerFunc) *apiclient.Client {
	t.Helper()
	transport := &Transport{Carrier: apiclient.Network()}
	for i, handler := range handlers {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		s := Server{URL: server.URL}
		if numbered {
			s.Cell = job.CellOf(uint8(i))
		}
		transport.Servers = append(transport.Servers, s)
	}
	c, err := apiclient.New(apiclient.Config{Server: "http://cells", Login: apiclient.Login{Token: "secret"}, Transport: transport})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func newID(t *testing.T, cell job.Cell) job.ID {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return cell.Stamp(job.ID(id))
}

func TestServersAreURLsPerhapsWithTheNumberOfTheirCell(t *testing.T) {
	for text, want := range map[string]Server{
		"http://a:8080/":        {URL: "http://a:8080"},
		"7=https://b/prefix":    {URL: "https://b/prefix", Cell: job.CellOf(7)},
		"http://c/prefix=of=it": {URL: "http://c/prefix=of=it"},
	} {
		s, err := ParseServer(text)
		require.NoError(t, err)
		require.Equal(t, want, s)
	}
	for text, complaint := range map[string]string{
		"256=http://a":   `"256" is not the number of a cell`,
		"x=http://a":     `"x" is not the number of a cell`,
		"1=a":            `"a" is not the address of a server`,
		"http://u:p@a":   "is not the address of a server",
		"ftp://a":        "is not the address of a server",
		"http://a?q=1&2": "is not the address of a server",
	} {
		_, err := ParseServer(text)
		require.ErrorContains(t, err, complaint, text)
	}
	all, err := ReadFile([]byte("# cells\n\n0 http://a\n  1\thttp://b/ \n"))
	require.NoError(t, err)
	require.Equal(t, []Server{{job.CellOf(0), "http://a"}, {job.CellOf(1), "http://b"}}, all)
	require.NoError(t, Check(all))
	for text, complaint := range map[string]string{"http://a": "line 1 is not a number and a URL", "0 http://a\n300 http://b": "line 2: \"300\" is not", "#": "it names no cell"} {
		_, err := ReadFile([]byte(text))
		require.ErrorContains(t, err, complaint)
	}
	require.ErrorContains(t, Check([]Server{{URL: "http://a"}, {URL: "http://a"}}), "two servers are of one cell")
	require.ErrorContains(t, Check([]Server{{job.CellOf(1), "http://a"}, {job.CellOf(1), "http://b"}}), "cell 1, http://a; cell 1, http://b")
}

func TestARequestForAnIDReachesItsCellAndNoOther(t *testing.T) {
	var asked [3]atomic.Int64
	var sent atomic.Value
	handlers := make([]http.HandlerFunc, len(asked))
	ids := make([]job.ID, len(asked))
	for i := range handlers {
		ids[i] = newID(t, job.CellOf(uint8(i)))
		handlers[i] = func(w http.ResponseWriter, r *http.Request) {
			asked[i].Add(1)
			body, _ := io.ReadAll(r.Body)
			sent.Store(r.Method + " " + r.RequestURI + " " + string(body) + " " + r.Header.Get("Authorization"))
			if !strings.Contains(r.RequestURI, ids[i].String()) && !strings.HasPrefix(r.RequestURI, "/workflows") {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = fmt.Fprintf(w, `{"cell":%d}`, i)
		}
	}
	for _, numbered := range []bool{true, false} {
		c := client(t, numbered, handlers...)
		for i, id := range ids {
			for k := range asked {
				asked[k].Store(0)
			}
			answer, err := c.Post(t.Context(), "/jobs/"+id.String()+"/cancel", map[string][]string{"a": {"b c"}}, []byte("{}"))
			require.NoError(t, err)
			require.JSONEq(t, fmt.Sprintf(`{"cell":%d}`, i), string(answer))
			require.Equal(t, "POST /jobs/"+id.String()+"/cancel?a=b+c {} Bearer secret", sent.Load())
			for k := range asked {
				switch {
				case numbered && k != i, k > i:
					require.Zero(t, asked[k].Load())
				default:
					require.EqualValues(t, 1, asked[k].Load())
				}
			}
		}
	}
	c := client(t, true, handlers...)
	_, err := c.Get(t.Context(), "/jobs/"+newID(t, job.CellOf(9)).String(), nil)
	require.ErrorContains(t, err, "the id is of cell 9, of which no server is named")
	_, err = c.Get(t.Context(), "/jobs/"+newID(t, job.Cell{}).String(), nil)
	var unknown *apiclient.Problem
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, 404, unknown.Status, "no cell has it")
	answer, err := c.Get(t.Context(), "/workflows/"+ids[2].String(), nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"cell":2}`, string(answer))
}

func TestWhatIsOfOneCellIsRefused(t *testing.T) {
	c := client(t, true, func(http.ResponseWriter, *http.Request) { t.Error("nobody is asked") })
	for method, path := range map[string]string{http.MethodPost: "/jobs", http.MethodGet: "/debug/doctor"} {
		var err error
		if method == http.MethodPost {
			_, err = c.Post(t.Context(), path, nil, []byte("{}"))
		} else {
			_, err = c.Get(t.Context(), path, nil)
		}
		require.ErrorContains(t, err, "several servers are named: name one with --server")
	}
}

func TestAPartIsNotShownAsTheWhole(t *testing.T) {
	fine := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"queues":[],"unserved":[]}`) }
	refusing := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"status":403,"detail":"the scope is missing"}`)
	}
	_, err := client(t, true, fine, refusing).Get(t.Context(), "/debug/queues", nil)
	require.ErrorContains(t, err, "the scope is missing")

	gone := httptest.NewServer(http.HandlerFunc(fine))
	gone.Close()
	transport := &Transport{Servers: []Server{{Cell: job.CellOf(4), URL: gone.URL}}, Carrier: apiclient.Network()}
	c, err := apiclient.New(apiclient.Config{Server: "http://cells", Transport: transport})
	require.NoError(t, err)
	_, err = c.Get(t.Context(), "/debug/queues", nil)
	require.ErrorContains(t, err, "cell 4, "+gone.URL)
}

// shelf is a server with a list, whose pages are shorter than asked for now and then.
func shelf(ids []job.ID, random *rand.Rand) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		to := min(from+min(limit, random.IntN(5)), len(ids))
		list := v1.JobList{Jobs: []v1.Job{}}
		for _, id := range ids[from:to] {
			list.Jobs = append(list.Jobs, v1.Job{JobID: id})
		}
		if to < len(ids) {
			list.NextCursor = strconv.Itoa(to)
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

// Whatever the pages of the servers are like, merged ones have everything once and in order.
func TestPagesOfAllCellsAreOneList(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		servers := make([][]job.ID, 1+random.IntN(4))
		var want []string
		for range random.IntN(60) {
			i := random.IntN(len(servers))
			id := newID(t, job.CellOf(uint8(i)))
			servers[i] = append(servers[i], id)
			want = append(want, id.String())
		}
		slices.Sort(want)
		slices.Reverse(want)
		handlers := make([]http.HandlerFunc, len(servers))
		for i, ids := range servers {
			slices.SortFunc(ids, func(a, b job.ID) int { return strings.Compare(b.String(), a.String()) })
			handlers[i] = shelf(ids, rand.New(rand.NewPCG(seed, uint64(i))))
		}
		c := client(t, true, handlers...)
		limit := 1 + random.IntN(10)
		var got []string
		query := map[string][]string{"limit": {strconv.Itoa(limit)}}
		for {
			answer, err := c.Get(t.Context(), "/jobs", query)
			require.NoError(t, err)
			var list v1.JobList
			require.NoError(t, answer.Into(&list))
			require.LessOrEqual(t, len(list.Jobs), limit)
			for _, one := range list.Jobs {
				got = append(got, one.JobID.String())
			}
			if list.NextCursor == "" {
				break
			}
			query["cursor"] = []string{list.NextCursor}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

func TestACursorOfOtherServersIsRefused(t *testing.T) {
	empty := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"jobs":[]}`) }
	c := client(t, true, empty, empty)
	for _, cursor := range []string{"x", "e30", "eyJwYWdlcyI6W3t9XX0"} {
		_, err := c.Get(t.Context(), "/jobs", map[string][]string{"cursor": {cursor}})
		require.ErrorContains(t, err, "the cursor is not of a list of these servers")
	}
}

func TestDeadLettersAreInTheOrderOfTheirDeaths(t *testing.T) {
	first, second := newID(t, job.CellOf(0)), newID(t, job.CellOf(1))
	letters := func(id job.ID, deadAt string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"deadLetters":[{"jobId":%q,"deadAt":%q,"new":1}]}`, id, deadAt)
		}
	}
	answer, err := client(t, true, letters(first, "2026-02-20T12:00:00.5Z"), letters(second, "2026-02-20T12:00:00Z")).Get(t.Context(), "/dead-letter", nil)
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"deadLetters":[{"jobId":%q,"deadAt":"2026-02-20T12:00:00.5Z","new":1},{"jobId":%q,"deadAt":"2026-02-20T12:00:00Z","new":1}]}`,
		first, second), string(answer), "items are as they came")
}

func TestFiguresAreAddedUp(t *testing.T) {
	q := queues([]v1.QueueList{
		{Queues: []v1.Queue{{JobType: "B", Queued: 1, OldestQueuedSeconds: 5, Served: true, Waiting: map[job.WaitReason]int64{"claim": 1}}}},
		{Queues: []v1.Queue{{JobType: "A", Dead: 3, Served: true}, {JobType: "B", Queued: 2, Running: 1, OldestQueuedSeconds: 2, Paused: true, Waiting: map[job.WaitReason]int64{"claim": 2}}}},
	})
	require.Equal(t, v1.QueueList{Queues: []v1.Queue{
		{JobType: "A", Dead: 3, Served: true},
		{JobType: "B", Queued: 3, Running: 1, OldestQueuedSeconds: 5, Paused: true, Waiting: map[job.WaitReason]int64{"claim": 3}},
	}, Unserved: []string{"B"}}, q, "a cell in which nobody serves the type is not hidden")

	m := metrics([]v1.Metrics{
		{StatusCounts: map[job.State]int64{job.Queued: 1}, AvgDurationSecondsByJobType: map[string]float64{"A": 1}, Recent: v1.Recent{SinceMinutes: 5, Submitted: 1}, ProcessedLastMinute: 1},
		{StatusCounts: map[job.State]int64{job.Queued: 2, job.Dead: 1}, AvgDurationSecondsByJobType: map[string]float64{"A": 3, "B": 2}, Recent: v1.Recent{SinceMinutes: 5, Submitted: 2}, ProcessedLastMinute: 2},
	})
	require.Equal(t, map[job.State]int64{job.Queued: 3, job.Dead: 1}, m.StatusCounts)
	require.Equal(t, map[string]float64{"A": 3, "B": 2}, m.AvgDurationSecondsByJobType)
	require.Equal(t, v1.Recent{SinceMinutes: 5, Submitted: 3}, m.Recent)
	require.EqualValues(t, 3, m.ProcessedLastMinute)

	at := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	s := series([]v1.Series{
		{
			Window: v1.Hour, Slots: []v1.SeriesSlot{{Start: at, Submitted: 1, Open: 2, Wait: &v1.SeriesLatency{Attempts: 1, P50: 1, P95: 9}}, {Start: at.Add(time.Minute)}},
			JobTypes: []v1.SeriesType{{JobType: "B", Ended: []int64{1, 0}, Failed: []int64{1, 0}}},
		},
		{
			Window: v1.Hour, Slots: []v1.SeriesSlot{
				{Start: at.Add(-time.Minute)}, {Start: at, Submitted: 2, Open: 1, Wait: &v1.SeriesLatency{Attempts: 2, P50: 2, P95: 3}}, {Start: at.Add(time.Minute), Dead: 1},
			},
			JobTypes: []v1.SeriesType{{JobType: "A", Ended: []int64{9, 1, 2}, Failed: []int64{9, 0, 1}}, {JobType: "B", Ended: []int64{9, 4, 5}, Failed: []int64{9, 0, 0}}},
		},
	})
	require.Equal(t, []v1.SeriesType{
		{JobType: "A", Ended: []int64{1, 2}, Failed: []int64{0, 1}}, {JobType: "B", Ended: []int64{5, 5}, Failed: []int64{1, 0}},
	}, s.JobTypes)
	require.Equal(t, []v1.SeriesSlot{
		{Start: at, Submitted: 3, Open: 3, Wait: &v1.SeriesLatency{Attempts: 3, P50: 2, P95: 9}},
		{Start: at.Add(time.Minute), Dead: 1},
	}, s.Slots, "but for those that one of the cells does not have")

	g := groups([]v1.DeadLetterGroups{
		{Groups: []v1.DeadLetterGroup{{JobType: "A", Fingerprint: "f", Message: "old", Count: 1, FirstDeadAt: at, LastDeadAt: at, Versions: []string{"v1"}}}},
		{Groups: []v1.DeadLetterGroup{{JobType: "A", Fingerprint: "f", Message: "new", Count: 2, FirstDeadAt: at.Add(time.Second), LastDeadAt: at.Add(time.Minute), Versions: []string{"v1", "v2"}, Recent: []int64{1, 2}}}, More: true},
	})
	require.Equal(t, v1.DeadLetterGroups{Groups: []v1.DeadLetterGroup{{
		JobType: "A", Fingerprint: "f", Message: "new", Count: 3, FirstDeadAt: at, LastDeadAt: at.Add(time.Minute), Versions: []string{"v1", "v2"}, Recent: []int64{1, 2},
	}}, More: true}, g)
}
