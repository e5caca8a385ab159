package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// withJobs is a ledger of n jobs whose ids end in 1 to n.
func withJobs(n int) *ledger {
	l := newLedger()
	for i := 1; i <= n; i++ {
		id := job.ID{15: byte(i)}
		l.jobs[id] = job.View{ID: id, Type: "SLEEP_JOB", Tenant: "acme", State: job.Queued, CreatedAt: birth, UpdatedAt: later}
	}
	return l
}

// nextPage is the target of an answer's Link header.
func nextPage(t *testing.T, answer *httptest.ResponseRecorder) string {
	t.Helper()
	link, found := strings.CutSuffix(answer.Header().Get("Link"), `>; rel="next"`)
	require.True(t, found, answer.Header())
	return strings.TrimPrefix(link, "<")
}

// pages follows the links from the first page on, and returns the ids.
func pages(t *testing.T, h http.Handler, path string) (ids []string) {
	t.Helper()
	for {
		answer := send(h, "GET", path, "")
		require.Equal(t, 200, answer.Code, answer.Body.String())
		var page struct {
			Jobs, DeadLetters []struct{ JobID string }
			NextCursor        string
		}
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &page))
		for _, j := range append(page.Jobs, page.DeadLetters...) {
			ids = append(ids, strings.TrimLeft(j.JobID, "0-"))
		}
		if page.NextCursor == "" {
			require.Empty(t, answer.Header().Get("Link"))
			return ids
		}
		path = nextPage(t, answer)
		next, err := url.Parse(path)
		require.NoError(t, err)
		require.Equal(t, page.NextCursor, next.Query().Get("cursor"), "link and cursor agree")
	}
}

func TestPagesOfJobsFollowOneAnother(t *testing.T) {
	require.Equal(t, []string{"5", "4", "3", "2", "1"}, pages(t, newAPI(t, withJobs(5)), "/jobs?limit=2&tag=a%26b&status=PENDING"))
	require.Equal(t, []string{"4", "3", "2", "1"}, pages(t, newAPI(t, withJobs(4)), "/jobs?limit=4"))
	require.Empty(t, pages(t, newAPI(t, withJobs(0)), "/jobs"))
}

func TestPagesOfDeadLettersFollowOneAnother(t *testing.T) {
	l := newLedger()
	l.dead = 5
	require.Equal(t, []string{"7", "8", "9", "a", "b"}, pages(t, newAPI(t, l), "/dead-letter?limit=2&jobType=FAIL_JOB"))
	require.Equal(t, job.DeadLetterFilter{
		Type: "FAIL_JOB", After: job.DeadLetterPosition{DeadAt: later.Add(-3 * time.Second).UTC(), ID: job.ID{15: 10}}, Limit: 3,
	}, l.deadLetters)
}

func TestFiltersReachTheLedger(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	asked := "/jobs?status=RUNNING,FAILED&status=PENDING&jobType=A&tenant=acme&tag=ü&createdFrom=2026-01-02T03:04:05%2B01:00&createdBefore=2026-02-01T00:00:00.5Z&limit=7"
	require.Equal(t, 200, send(h, "GET", asked, "").Code)
	require.True(t, l.filter.CreatedFrom.Equal(time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC)))
	l.filter.CreatedFrom = time.Time{}
	require.Equal(t, job.Filter{
		States: []job.State{job.Created, job.Queued, job.Running, job.Retry, job.Dead},
		Type:   "A", Tenant: "acme", Tag: "ü", CreatedBefore: time.Date(2026, 2, 1, 0, 0, 0, 500e6, time.UTC), Limit: 7,
	}, l.filter)

	require.Equal(t, 200, send(h, "GET", "/jobs", "").Code)
	require.Equal(t, job.Filter{Limit: 100}, l.filter)

	require.Equal(t, 200, send(h, "POST", "/dead-letter/retry?jobType=A&tenant=acme&limit=3", "").Code)
	require.Equal(t, job.DeadLetterFilter{Type: "A", Tenant: "acme", Limit: 3}, l.deadLetters)
	for _, route := range []string{"POST /dead-letter/retry", "GET /dead-letter"} {
		method, path, _ := strings.Cut(route, " ")
		require.Equal(t, 200, send(h, method, path+"?errorCode=no+luck&fingerprint=0123456789abcdef&limit=3", "").Code)
		require.Equal(t, "no luck 0123456789abcdef", l.deadLetters.Code+" "+l.deadLetters.Fingerprint)
	}
	for _, path := range []string{"/debug/jobs", "/debug/jobs/count"} {
		l.filter = job.Filter{}
		asked := path + "?state=held,queued&state=running&jobType=A&tenant=acme&tag=t&worker=w&errorCode=c&payload=p&createdFrom=2026-01-02T03:04:05Z"
		require.Equal(t, 200, send(h, "GET", asked, "").Code)
		require.Positive(t, l.filter.Within)
		l.filter.Limit, l.filter.Within = 0, 0
		require.Equal(t, job.Filter{
			States: []job.State{job.Created, job.Queued, job.Running}, WithoutScheduled: true, Type: "A", Tenant: "acme", Tag: "t",
			Worker: "w", Code: "c", Payload: "p", CreatedFrom: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}, l.filter)
		require.Equal(t, 200, send(h, "GET", path+"?state=held,scheduled", "").Code)
		require.False(t, l.filter.WithoutHeld || l.filter.WithoutScheduled)
	}
	require.Equal(t, 200, send(h, "GET", "/dead-letter/groups?jobType=A&tenant=acme", "").Code)
	require.Equal(t, job.DeadLetterFilter{Type: "A", Tenant: "acme", Limit: 1000}, l.deadLetters)
}

func TestFiltersAreBoundedAsInASubmission(t *testing.T) {
	for filter, body := range map[string]string{
		"jobType": `{"jobType":"%s"}`, "tenant": `{"jobType":"A","tenant":"%s"}`, "tag": `{"jobType":"A","tags":["%s"]}`,
	} {
		for _, length := range []int{100, 101, 200, 201} {
			word := strings.Repeat("é", length)
			h := newAPI(t, newLedger())
			fits := send(h, "POST", "/jobs", fmt.Sprintf(body, word)).Code == 202
			for _, route := range []string{"GET /jobs", "GET /dead-letter", "GET /dead-letter/groups", "POST /dead-letter/retry"} {
				method, path, _ := strings.Cut(route, " ")
				if filter == "tag" && path != "/jobs" {
					continue
				}
				answer := send(h, method, path+"?"+filter+"="+url.QueryEscape(word), "")
				require.Equal(t, fits, answer.Code == 200, "%s: %s of %d characters: %s", route, filter, length, answer.Body)
			}
		}
	}
}

func TestFiltersThatWouldLetThroughTooMuchAreRefused(t *testing.T) {
	for _, c := range []struct{ path, place string }{
		{"/jobs?status=pending", "query.status"},
		{"/jobs?status=PENDING,", "query.status"},
		{"/jobs?status=", "query.status"},
		{"/jobs?jobType=", "query.jobType"},
		{"/jobs?jobType=%00", "query.jobType"},
		{"/jobs?tenant=" + strings.Repeat("x", 201), "query.tenant"},
		{"/jobs?tag=%FF", "query.tag"},
		{"/jobs?createdFrom=2026-01-02", "query.createdFrom"},
		{"/jobs?createdBefore=yesterday", "query.createdBefore"},
		{"/jobs?createdBefore=0001-01-01T00:00:00Z", "query.createdBefore"},
		{"/jobs?parentId=00000000-0000-0000-0000-000000000000", "query.parentId"},
		{"/jobs?jobtype=A", "query.jobtype"},
		{"/jobs?jobType=A&jobType=B", "query.jobType"},
		{"/jobs?limit=1&limit=2", "query.limit"},
		{"/jobs?a=%zz", "query"},
		{"/jobs?" + strings.Repeat("n", 1000) + "=1", "query." + strings.Repeat("n", 100) + "…"},
		{"/dead-letter?type=A", "query.type"},
		{"/dead-letter?cursor=x", "query.cursor"},
		{"/dead-letter?fingerprint=nope", "query.fingerprint"},
		{"/debug/jobs?state=created", "query.state"},
		{"/debug/jobs/count?limit=1", "query.limit"},
		{"/dead-letter/groups?limit=3", "query.limit"},
		{"POST /dead-letter/retry?tenant=", "query.tenant"},
		{"POST /dead-letter/retry?jobtype=A", "query.jobtype"},
		{"POST /dead-letter/retry?cursor=A", "query.cursor"},
	} {
		method, path, found := strings.Cut(c.path, " ")
		if !found {
			method, path = "GET", c.path
		}
		l := newLedger()
		answer := send(newAPI(t, l), method, path, "")
		require.Equal(t, 422, answer.Code, c.path)
		require.Contains(t, answer.Body.String(), `"location":"`+c.place+`"`)
		require.Zero(t, l.limit, "nothing is listed or requeued")
	}
	answer := send(newAPI(t, newLedger()), "GET", "/jobs?"+manyParameters(600), "")
	require.Equal(t, 20, strings.Count(answer.Body.String(), `"location"`))
}

func manyParameters(n int) string {
	query := url.Values{}
	for i := range n {
		query.Set("p"+strconv.Itoa(i), "1")
	}
	return query.Encode()
}

func TestACursorIsGoodForItsListAndFiltersOnly(t *testing.T) {
	l := withJobs(5)
	l.dead = 5
	h := newAPI(t, l)
	cursorOf := func(path string) string {
		next, err := url.Parse(nextPage(t, send(h, "GET", path, "")))
		require.NoError(t, err)
		return next.Query().Get("cursor")
	}
	const filters = "/jobs?limit=2&status=PENDING,RUNNING&jobType=A&tenant=b&tag=c&createdFrom=2026-01-01T00:00:00Z&createdBefore=2026-02-01T00:00:00Z"
	cursor := cursorOf(filters)
	for _, same := range []string{
		filters,
		"/jobs?status=RUNNING&status=PENDING&limit=3&jobType=A&tag=c&tenant=b&createdFrom=2026-01-01T01:00:00%2B01:00&createdBefore=2026-02-01T00:00:00.000Z",
	} {
		require.Equal(t, 200, send(h, "GET", same+"&cursor="+cursor, "").Code, same)
	}
	for _, other := range []string{
		"/jobs?limit=2", strings.Replace(filters, "RUNNING", "FAILED", 1), strings.Replace(filters, "jobType=A", "jobType=B", 1),
		strings.Replace(filters, "tenant=b", "tenant=c", 1), strings.Replace(filters, "tag=c", "tag=d", 1),
		strings.Replace(filters, "tenant=b&tag=c", "tenant=c&tag=b", 1), strings.Replace(filters, "2026-01", "2026-02", 1),
		strings.Replace(filters, "2026-02", "2026-03", 1), "/dead-letter?limit=2",
	} {
		answer := send(h, "GET", other+"&cursor="+cursor, "")
		require.Equal(t, 422, answer.Code, other)
		require.Contains(t, answer.Body.String(), `"location":"query.cursor"`)
	}
	dead := cursorOf("/dead-letter?limit=2")
	require.Equal(t, 200, send(h, "GET", "/dead-letter?cursor="+dead, "").Code)
	require.Equal(t, 422, send(h, "GET", "/dead-letter?tenant=a&cursor="+dead, "").Code)
	require.Equal(t, 422, send(h, "GET", "/jobs?cursor="+dead, "").Code)
}

func FuzzCursor(f *testing.F) {
	h := undocumented(withJobs(3))
	first := send(h, "GET", "/jobs?limit=1", "")
	var page struct{ NextCursor string }
	require.NoError(f, json.Unmarshal(first.Body.Bytes(), &page))
	for _, seed := range []string{
		page.NextCursor, page.NextCursor + "=", page.NextCursor + "\n", "\r" + page.NextCursor, page.NextCursor[1:], "", "A", strings.Repeat("A", 34), strings.Repeat("A", 9<<10),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, list := range []string{"/jobs", "/dead-letter"} {
			target := list + "?limit=1&cursor=" + url.QueryEscape(cursor)
			answer := send(h, "GET", target, "")
			if len(target) > 8<<10 {
				require.Equal(t, 414, answer.Code)
				continue
			}
			genuine := list == "/jobs" && cursor == page.NextCursor
			require.Equal(t, genuine, answer.Code == 200, "%d for %q", answer.Code, cursor)
			if !genuine {
				require.Equal(t, 422, answer.Code)
			}
		}
	})
}
