package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// given prepares the objects that an operation's example refers to, and returns the id
// of the job. An operation on a job needs a line here. So does a list, for its cursor.
var given = map[string]func(*testing.T) string{
	"get-job":           func(t *testing.T) string { return submit(t, `"payload": {"sleepSeconds": 1}`) },
	"cancel-job":        func(t *testing.T) string { return submit(t, `"payload": {"sleepSeconds": 1}, "delay": "1h"`) },
	"hold-job":          func(t *testing.T) string { return submit(t, `"payload": {"sleepSeconds": 1}, "delay": "1h"`) },
	"release-job":       func(t *testing.T) string { return submit(t, `"payload": {"sleepSeconds": 1}, "hold": true`) },
	"requeue-job":       deadLetter,
	"inspect-job":       deadLetter,
	"get-job-logs":      deadLetter,
	"resubmit-job":      nightly,
	"edit-job":          nightly,
	"edit-jobs":         twice(nightly),
	"list-jobs":         twice(nightly),
	"list-dead-letters": twice(deadLetter),
	"list-acts":         twice(canceled),
	"list-workflows":    twice(workflow),
	"get-workflow":      workflow,
	"cancel-workflow":   workflow,
	"hold-workflow":     workflow,
	"release-workflow":  workflow,
	"requeue-workflow":  workflow,
	"get-limit":         limited,
	"delete-limit":      limited,
	"set-limit":         unlimited,
	"set-pause":         endsPauses,
	"pause-all":         endsPauses,
	"end-pause": func(t *testing.T) string {
		call(t, http.MethodPut, "/debug/pauses/type/builtin", "{}", http.StatusOK)
		return ""
	},
	"resume-all": func(t *testing.T) string {
		call(t, http.MethodPut, "/debug/pauses/all", "{}", http.StatusOK)
		return ""
	},
	"find-jobs":           twice(nightly),
	"get-job-tree":        nightly,
	"erase-job":           deadLetter,
	"get-erasure":         erasure,
	"get-operation":       bulk,
	"stop-operation":      bulk,
	"list-schedules":      twice(scheduled),
	"get-schedule":        scheduled,
	"delete-schedule":     scheduled,
	"backfill-schedule":   scheduled,
	"list-scheduled-runs": scheduled,
	"pause-schedule":      scheduled,
	"resume-schedule":     scheduled,
	"run-schedule":        scheduled,
	"drain-worker":        drainable,
	"resume-worker":       drainable,
	"list-plugin-events":  twice(restarted),
	"command-plugin":      describedPlugins,
	"get-plugin-command": func(t *testing.T) string {
		describedPlugins(t)
		var asked struct{ CommandID string }
		require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodPost, "/debug/plugins/builtin/commands",
			`{"command": "enable"}`, http.StatusAccepted)), &asked))
		return asked.CommandID
	},
	// The other examples need the plugin.
	"disable-plugin": func(t *testing.T) string {
		t.Cleanup(func() { call(t, http.MethodPost, "/debug/plugins/builtin/enable", "", http.StatusOK) })
		return ""
	},
}

// restarted restarts the plugin, and waits until that is recorded.
func restarted(t *testing.T) string {
	t.Helper()
	const promoted = "/debug/plugins/events?plugin=builtin&event=promoted&limit=1"
	before := call(t, http.MethodGet, promoted, "", http.StatusOK)
	call(t, http.MethodPost, "/debug/plugins/builtin/restart", "", http.StatusOK)
	require.Eventually(t, func() bool { return call(t, http.MethodGet, promoted, "", http.StatusOK) != before }, time.Minute, 10*time.Millisecond)
	return ""
}

// describedPlugins waits until the orchestrator has described its plugins.
func describedPlugins(t *testing.T) string {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Contains(call(t, http.MethodGet, "/debug/plugins/everywhere", "", http.StatusOK), `"name":"builtin"`)
	}, time.Minute, 10*time.Millisecond)
	return ""
}

// workflow makes a workflow that does not end during the tests, and returns its id.
func workflow(t *testing.T) string {
	t.Helper()
	var made struct{ WorkflowID string }
	require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodPost, "/workflows",
		`{"jobs": [{"name": "a", "jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}, "delay": "1h"}]}`, http.StatusAccepted)), &made))
	return made.WorkflowID
}

// scheduled sets the schedule that the examples are about, and another one.
func scheduled(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"morning-report", "evening-report"} {
		call(t, http.MethodPut, "/schedules/"+name+"?tenant=default",
			`{"cron": "0 6 1 1 *", "job": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`, http.StatusOK)
	}
	return ""
}

// erasure asks for the erasure of a tenant, and returns its id.
func erasure(t *testing.T) string {
	t.Helper()
	var asked struct{ ErasureID string }
	require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodPost, "/erasures",
		`{"tenant": "gone", "reason": "asked"}`, http.StatusAccepted)), &asked))
	return asked.ErasureID
}

// bulk starts an operation that finds no job, and returns its id.
func bulk(t *testing.T) string {
	t.Helper()
	var started struct{ Operation struct{ OperationID string } }
	require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodPost, "/debug/operations",
		`{"action": "requeue", "filter": {"jobType": "NOBODY"}}`, http.StatusAccepted)), &started))
	return started.Operation.OperationID
}

// narrow are filters whose examples would leave nothing of what given makes.
var narrow = []string{"state", "worker", "errorCode", "fingerprint", "payload", "parentId", "actor", "action", "jobId"}

// endless are operations whose answer does not end; test/webhooks reads it.
var endless = []string{"follow-events"}

// limited sets the limit that the examples are about.
func limited(t *testing.T) string {
	t.Helper()
	call(t, http.MethodPut, "/debug/limits/type/builtin", `{"concurrency": 1}`, http.StatusOK)
	return unlimited(t)
}

func unlimited(t *testing.T) string {
	t.Helper()
	t.Cleanup(func() { ended(t, "/debug/limits/type/builtin") })
	return ""
}

func endsPauses(t *testing.T) string {
	t.Helper()
	t.Cleanup(func() {
		ended(t, "/debug/pauses/type/builtin")
		ended(t, "/debug/pauses/all")
	})
	return ""
}

// ended deletes what may be there.
func ended(t *testing.T, path string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, server.url+path, nil)
	require.NoError(t, err)
	request.SetBasicAuth(operator, server.password)
	require.Contains(t, []int{http.StatusOK, http.StatusNotFound}, exchange(t, request).status)
}

// drainable returns the id of the worker, which takes jobs again after the test.
func drainable(t *testing.T) string {
	t.Helper()
	var found struct{ Workers []struct{ WorkerID string } }
	require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodGet, "/debug/workers", "", http.StatusOK)), &found))
	id := url.PathEscape(found.Workers[0].WorkerID)
	t.Cleanup(func() { call(t, http.MethodPost, "/debug/workers/"+id+"/resume", "", http.StatusOK) })
	return id
}

// nightly makes a job that does not start during the tests.
func nightly(t *testing.T) string {
	t.Helper()
	return submit(t, `"payload": {"sleepSeconds": 1}, "delay": "1h", "tags": ["nightly"]`)
}

func twice(do func(*testing.T) string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		_ = do(t)
		return do(t)
	}
}

func TestEveryExampleIsAnsweredAsDescribed(t *testing.T) {
	for route, o := range operations(t) {
		if slices.Contains(endless, o.OperationID) {
			continue
		}
		t.Run(o.OperationID, func(t *testing.T) {
			id := ""
			if prepare := given[o.OperationID]; prepare != nil {
				id = prepare(t)
			}
			if len(o.RequestBody.Content) == 0 {
				requireSuccess(t, o, route, exchange(t, requestFor(t, route, o, id, "", "")))
				return
			}
			for media, body := range o.RequestBody.Content {
				for name, example := range body.Examples {
					t.Run(name, func(t *testing.T) {
						requireSuccess(t, o, route, exchange(t, requestFor(t, route, o, id, media, textOf(t, example.Value))))
					})
				}
			}
		})
	}
}

func requireSuccess(t *testing.T, o operation, route string, got answer) {
	t.Helper()
	require.Equal(t, 2, got.status/100, "%s: %d %s\nIf its example needs something first, add that to given, test/openapi/examples_test.go.",
		route, got.status, got.body)
	require.Contains(t, o.Responses, strconv.Itoa(got.status), route)
}

// requestFor returns the example request of an operation, with an id and a cursor that
// exist.
func requestFor(t *testing.T, route string, o operation, id, media, body string) *http.Request {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	query, header := url.Values{}, http.Header{}
	pages := false
	for _, p := range o.Parameters {
		value := fmt.Sprint(p.Example)
		switch {
		case p.In == "path" && p.Name == "worker":
			path = strings.ReplaceAll(path, "{worker}", id)
		case p.In == "path" && p.Name == "id":
			require.NotEmpty(t, id, "%s: say which job its example is about, in given, test/openapi/examples_test.go", route)
			path = strings.ReplaceAll(path, "{id}", id)
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.Name == "cursor":
			pages = true
		case p.In == "query" && slices.Contains(narrow, p.Name):
		case p.In == "query":
			query[p.Name] = valuesOf(p.Example)
		case p.In == "header":
			if o.OperationID != "submit-job" {
				value += " of " + t.Name() // a key is for one request
			}
			header.Set(p.Name, value)
		}
	}
	if pages {
		query.Set("cursor", secondPage(t, method, path, query, body))
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(t.Context(), method, server.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header = header
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	request.SetBasicAuth(operator, server.password)
	return request
}

// valuesOf are the values of a parameter that may be repeated.
func valuesOf(example any) []string {
	list, many := example.([]any)
	if !many {
		list = []any{example}
	}
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = fmt.Sprint(item)
	}
	return texts
}

// secondPage returns the cursor after a page of one.
func secondPage(t *testing.T, method, path string, query url.Values, body string) string {
	t.Helper()
	query.Set("limit", "1")
	var first struct{ NextCursor string }
	require.NoError(t, json.Unmarshal([]byte(call(t, method, path+"?"+query.Encode(), body, http.StatusOK)), &first))
	require.NotEmpty(t, first.NextCursor, "%s: make two of what its example lists, in given, test/openapi/examples_test.go", path)
	return first.NextCursor
}

// answer is an answer whose body has been read.
type answer struct {
	status int
	body   string
}

// exchange sends a request, and checks it and its answer against the description.
func exchange(t *testing.T, request *http.Request) answer {
	t.Helper()
	var sent []byte
	if request.Body != nil {
		var err error
		sent, err = io.ReadAll(request.Body)
		require.NoError(t, err)
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	received, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	checks, err := strictValidator()
	require.NoError(t, err)
	if response.StatusCode < 300 && !inLines(request.Header) {
		request.Body = io.NopCloser(bytes.NewReader(sent))
		_, errs := checks.ValidateHttpRequestSync(request)
		for _, e := range errs {
			t.Errorf("%s %s: the request is not as described: %s", request.Method, request.URL, e.Error())
		}
	}
	if !inLines(response.Header) {
		request.Body, response.Body = io.NopCloser(bytes.NewReader(sent)), io.NopCloser(bytes.NewReader(received))
		_, errs := checks.ValidateHttpResponse(request, response)
		for _, e := range errs {
			t.Errorf("%s %s: the answer is not as described: %s\n%s", request.Method, request.URL, e.Error(), received)
		}
	}
	return answer{status: response.StatusCode, body: string(received)}
}

// inLines reports whether a body has one JSON value a line. The validators would read it
// as one invalid value; the tests of package api check each line.
func inLines(header http.Header) bool { return header.Get("Content-Type") == "application/x-ndjson" }

// call sends a request as the operator and returns the body of the answer. A cleanup may
// call it.
func call(t *testing.T, method, path, body string, want int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, server.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.SetBasicAuth(operator, server.password)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, want, response.StatusCode, "%s %s: %s", method, path, text)
	return string(text)
}

// canceled is what an operator has done to a job.
func canceled(t *testing.T) string {
	t.Helper()
	id := submit(t, `"payload": {"sleepSeconds": 1}, "delay": "1h"`)
	call(t, http.MethodPost, "/jobs/"+id+"/cancel", "", http.StatusOK)
	return id
}

// submit makes a SLEEP_JOB with the members and returns its id.
func submit(t *testing.T, members string) string {
	t.Helper()
	var made struct{ JobID string }
	require.NoError(t, json.Unmarshal([]byte(call(t, http.MethodPost, "/jobs", `{"jobType": "SLEEP_JOB", `+members+`}`, http.StatusAccepted)), &made))
	return made.JobID
}

// deadLetter makes a job that has failed for good: it takes too long.
func deadLetter(t *testing.T) string {
	t.Helper()
	id := submit(t, `"payload": {"sleepSeconds": 300}, "timeout": "10ms", "maxAttempts": 1`)
	require.Eventually(t, func() bool {
		return strings.Contains(call(t, http.MethodGet, "/jobs/"+id+"?wait=10s", "", http.StatusOK), `"FAILED"`)
	}, patience, time.Millisecond)
	return id
}

func textOf(t *testing.T, value any) string {
	t.Helper()
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
