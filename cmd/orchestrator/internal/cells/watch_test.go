package cells

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// watched is what pages ask, of servers that the handlers serve, each of the cell of its index.
func watched(t *testing.T, handlers ...http.HandlerFunc) *Transport {
	t.Helper()
	network := apiclient.Network()
	t.Cleanup(network.CloseIdleConnections)
	transport := &Transport{Carrier: network}
	for i, handler := range handlers {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		transport.Servers = append(transport.Servers, Server{Cell: job.CellOf(uint8(i)), URL: server.URL})
	}
	transport.Watch = NewWatch(transport.Servers, network)
	return transport
}

func ask(t *testing.T, api http.Handler, method, target string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody))
	return w.Code, w.Body.String()
}

// missingOf is why cells are missing, by their names.
func missingOf(w *Watch) map[string]string {
	missing := make(map[string]string)
	for _, one := range w.Cells() {
		missing[one.Name] = one.Missing
	}
	return missing
}

func TestAServerThatStopsAnsweringIsLeftOutAtOnceAndComesBack(t *testing.T) {
	var down atomic.Bool
	var asked atomic.Int64
	count := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == looksAt {
			_, _ = io.WriteString(w, `{"pauses":[]}`)
			return
		}
		_, _ = io.WriteString(w, `{"count":5,"more":true}`)
	}
	sick := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if !down.Load() {
			count(w, r)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"status":503,"detail":"the database does not answer"}`)
	}
	api := watched(t, count, sick)
	api.Watch.Look(t.Context())
	status, text := ask(t, api, http.MethodGet, "/debug/jobs/count")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"count":10,"more":true}`, text)

	down.Store(true)
	_, text = ask(t, api, http.MethodGet, "/debug/jobs/count")
	require.JSONEq(t, `{"count":5,"more":true}`, text, "the other alone, by the same request")
	require.Equal(t, map[string]string{"0": "", "1": "the database does not answer"}, missingOf(api.Watch))

	before := asked.Load()
	_, text = ask(t, api, http.MethodGet, "/debug/jobs/count")
	require.JSONEq(t, `{"count":5,"more":true}`, text)
	id := newID(t, job.CellOf(1))
	status, text = ask(t, api, http.MethodGet, "/jobs/"+id.String())
	require.Equal(t, 503, status)
	require.Contains(t, text, "the database does not answer")
	status, text = ask(t, api, http.MethodPost, "/jobs/"+id.String()+"/cancel")
	require.Equal(t, 503, status)
	require.Contains(t, text, "cell 1, "+api.Servers[1].URL)
	require.Equal(t, before, asked.Load(), "nobody waits for it")

	down.Store(false)
	api.Watch.Look(t.Context())
	_, text = ask(t, api, http.MethodGet, "/debug/jobs/count")
	require.JSONEq(t, `{"count":10,"more":true}`, text)
}

func TestNoCellAtAllIsSaid(t *testing.T) {
	refusing := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"status":401,"detail":"the credentials are wrong"}`)
	}
	api := watched(t, refusing, refusing)
	api.Watch.Look(t.Context())
	status, text := ask(t, api, http.MethodGet, "/metrics")
	require.Equal(t, 503, status)
	require.Contains(t, text, "no cell answers: cell 0, "+api.Servers[0].URL+": the credentials are wrong; cell 1, ")
}

func TestPagesAskOneCellForWhatHandlersDeclare(t *testing.T) {
	without := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	with := func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%q", r.URL.Path) }
	api := watched(t, without, with)
	for _, path := range []string{"/job-types/A", "/job-types/A/schema"} {
		_, text := ask(t, api, http.MethodGet, path)
		require.Equal(t, `"`+path+`"`, text)
	}
	for method, path := range map[string]string{http.MethodPost: "/debug/operations", http.MethodGet: "/debug/doctor", http.MethodPut: "/debug/pauses/type/A"} {
		status, _ := ask(t, api, method, path)
		require.Equal(t, http.StatusMisdirectedRequest, status, path)
	}
}

func TestOperationsAndPluginsOfAllCells(t *testing.T) {
	ids := []job.ID{newID(t, job.CellOf(0)), newID(t, job.CellOf(1)), newID(t, job.CellOf(0))}
	said := func(own ...job.ID) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/debug/plugins" {
				_, _ = io.WriteString(w, `{"plugins":[{"name":"mail"}]}`)
				return
			}
			list := v1.OperationList{}
			for _, id := range own {
				list.Operations = append(list.Operations, v1.Operation{OperationID: id})
			}
			_ = json.NewEncoder(w).Encode(list)
		}
	}
	api := watched(t, said(ids[2], ids[0]), said(ids[1]))
	var list v1.OperationList
	_, text := ask(t, api, http.MethodGet, "/debug/operations")
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	require.Len(t, list.Operations, 3)
	for i, one := range list.Operations {
		require.Equal(t, ids[2-i], one.OperationID, "newest first")
	}
	_, text = ask(t, api, http.MethodGet, "/debug/plugins")
	require.Contains(t, text, "mail of cell 0")
	require.Contains(t, text, "mail of cell 1")
}

// lists are found jobs, a page of which ends after three.
func lists(ids []job.ID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		after := r.URL.Query().Get("cursor")
		page := v1.FoundJobs{Jobs: []v1.FoundJob{}}
		for _, id := range ids {
			switch {
			case after != "" && id.String() >= after:
				continue
			case len(page.Jobs) == 3:
				at := page.Jobs[2].JobID
				back := at.Time()
				page.NextCursor, page.SearchedBack = at.String(), &back
			default:
				page.Jobs = append(page.Jobs, v1.FoundJob{Job: v1.Job{JobID: id}})
				continue
			}
			break
		}
		if page.PageCursor = after; after == "" && len(page.Jobs) > 0 {
			page.PageCursor = place{ID: page.Jobs[0].JobID}.above().ID.String()
		}
		_ = json.NewEncoder(w).Encode(page)
	}
}

func TestAPageOfFoundJobsIsReadAgainWithoutLaterOnes(t *testing.T) {
	var served [2]atomic.Value
	var all []job.ID
	add := func(cell uint8) {
		id := newID(t, job.CellOf(cell))
		all = append([]job.ID{id}, all...)
		own, _ := served[cell].Load().([]job.ID)
		served[cell].Store(append([]job.ID{id}, own...))
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 9 {
		add(uint8(random.IntN(2)))
	}
	add(0)
	add(1)
	handler := func(cell int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { lists(served[cell].Load().([]job.ID))(w, r) }
	}
	api := watched(t, handler(0), handler(1))
	page := func(cursor string) (found v1.FoundJobs) {
		status, text := ask(t, api, http.MethodGet, "/debug/jobs?limit=4&cursor="+cursor)
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &found))
		return found
	}
	ids := func(found v1.FoundJobs) (ids []job.ID) {
		for _, one := range found.Jobs {
			ids = append(ids, one.JobID)
		}
		return ids
	}
	first := page("")
	require.Equal(t, all[:4], ids(first))
	require.Equal(t, all[3].Time().UTC(), first.SearchedBack.UTC(), "the page is full")
	before := slices.Clone(all)
	for range 8 {
		add(uint8(random.IntN(2)))
	}
	again := page(first.PageCursor)
	require.Equal(t, before[:4], ids(again))
	require.Equal(t, first.PageCursor, again.PageCursor)
	require.Equal(t, all[:3], ids(page(""))[:3])

	var rest []job.ID
	for cursor := first.NextCursor; cursor != ""; {
		next := page(cursor)
		rest, cursor = append(rest, ids(next)...), next.NextCursor
	}
	require.Equal(t, before[4:], rest)
}

func TestOneThatSearchesInVainDoesNotHideTheOthers(t *testing.T) {
	id, later := newID(t, job.CellOf(0)), newID(t, job.CellOf(0))
	found := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"jobs":[{"jobId":%q},{"jobId":%q}]}`, later, id)
	}
	back := id.Time().Add(-1)
	for name, c := range map[string]struct {
		back string
		want int
	}{
		"it has looked beyond them": {back.Add(-1e9).Format("2006-01-02T15:04:05.999Z07:00"), 2},
		"it has not":                {later.Time().Add(1e9).Format("2006-01-02T15:04:05.999Z07:00"), 0},
	} {
		vain := func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "cursor=on") {
				_, _ = io.WriteString(w, `{"jobs":[]}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"jobs":[],"nextCursor":"on","searchedBack":%q}`, c.back)
		}
		api := watched(t, found, vain)
		_, text := ask(t, api, http.MethodGet, "/debug/jobs")
		var page v1.FoundJobs
		require.NoError(t, json.Unmarshal([]byte(text), &page))
		require.Len(t, page.Jobs, c.want, name)
		require.NotNil(t, page.SearchedBack)
		_, text = ask(t, api, http.MethodGet, "/debug/jobs?cursor="+page.NextCursor)
		var rest v1.FoundJobs
		require.NoError(t, json.Unmarshal([]byte(text), &rest))
		require.Empty(t, rest.NextCursor)
		require.Len(t, rest.Jobs, 2-c.want, name)
	}
}
