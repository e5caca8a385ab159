package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// array is a JSON array of n copies of a text.
func array(text string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"
}

func TestABatchHasAtMostTenThousandJobs(t *testing.T) {
	const small = `{"jobType":"A"}`
	for name, c := range map[string]struct {
		path, body string
		headers    []string
		code       int
	}{
		"array":             {path: "/jobs/batch", body: array(small, 10_000), code: 202},
		"array, one more":   {path: "/jobs/batch", body: array(small, 10_001), code: 413},
		"lines":             {path: "/jobs/batch", body: strings.Repeat(small+"\n", 10_000), headers: ndjson, code: 202},
		"lines, one more":   {path: "/jobs/batch", body: strings.Repeat(small+"\n", 10_001), headers: ndjson, code: 413},
		"each":              {path: "/jobs/batch?atomic=false", body: array(small, 10_000), code: 200},
		"each, one more":    {path: "/jobs/batch?atomic=false", body: array(small, 10_001), code: 413},
		"each line, more":   {path: "/jobs/batch?atomic=false", body: strings.Repeat(small+"\n", 10_001), headers: ndjson, code: 200},
		"every one a lapse": {path: "/jobs/batch", body: array(`{}`, 10_001), code: 422},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			server := serve(t, l)
			answer := send(server.Config.Handler, "POST", c.path, c.body, c.headers...)
			require.Equal(t, c.code, answer.Code)
			switch stored := strings.Count(c.body, `"A"`); c.code {
			case 413:
				require.Contains(t, answer.Body.String(), "more than 10000 jobs")
				require.Empty(t, l.submitted)
			case 422:
				require.Equal(t, 100, strings.Count(answer.Body.String(), `"location"`))
				require.Contains(t, answer.Body.String(), `"#/99/jobType"`)
			default:
				require.Len(t, l.submitted, stored)
			}
		})
	}
}

func TestJobsOfABatchHaveTermsOfTheirOwn(t *testing.T) {
	const keyed, expired = `{"jobType":"A","concurrencyKey":"k"}`, `{"jobType":"A","expiresAt":"2020-01-01T00:00:00Z"}`
	for _, c := range []struct {
		path, begin, between, end string
		headers                   []string
	}{
		{"/jobs/batch", "[", ",", "]", nil},
		{"/jobs/batch", "", "\n", "\n", ndjson},
		{"/jobs/batch?atomic=false", "[", ",", "]", nil},
		{"/jobs/batch?atomic=false", "", "\n", "\n", ndjson},
	} {
		body := func(jobs ...string) string { return c.begin + strings.Join(jobs, c.between) + c.end }
		l := newLedger()
		h := serve(t, l).Config.Handler
		answer := send(h, "POST", c.path, body(keyed, keyed), c.headers...)
		require.Less(t, answer.Code, 300, answer.Body.String())
		require.Len(t, l.submitted, 2)
		require.Equal(t, "k", l.submitted[1].Terms.ConcurrencyKey)
		refused := send(h, "POST", c.path, body(keyed, expired), c.headers...)
		require.Contains(t, refused.Body.String(), `{"message":"must be in the future","location":"#/`)
	}
}

func TestAnEmptyBatchIsAnsweredWithEmptyLists(t *testing.T) {
	for path, want := range map[string]string{
		"/jobs/batch":              `{"accepted":0,"jobs":[]}`,
		"/jobs/batch?atomic=false": `{"accepted":0,"refused":0,"results":[]}`,
	} {
		answer := send(newAPI(t, newLedger()), "POST", path, " [ ] ")
		require.Less(t, answer.Code, 300)
		require.JSONEq(t, want, answer.Body.String())
	}
	answer := send(newAPI(t, newLedger()), "POST", "/jobs/batch?atomic=false", "", ndjson...)
	require.Equal(t, 200, answer.Code)
	require.JSONEq(t, `{"done":true,"accepted":0,"refused":0}`, answer.Body.String())
}

func TestLinesMayBeginWithAByteOrderMark(t *testing.T) {
	for _, path := range []string{"/jobs/batch", "/jobs/batch?atomic=false"} {
		l := newLedger()
		server := serve(t, l)
		answer := send(server.Config.Handler, "POST", path, "\ufeff"+`{"jobType":"A"}`+"\n"+`{"jobType":"A"}`+"\n", ndjson...)
		require.Less(t, answer.Code, 300, answer.Body.String())
		require.Len(t, l.submitted, 2)
		answer = send(server.Config.Handler, "POST", path, `{"jobType":"A"}`+"\n\ufeff"+`{"jobType":"A"}`+"\n", ndjson...)
		require.Contains(t, answer.Body.String(), "line 2, column 1", "anywhere else it is a mistake")
	}
}

func TestNothingOfAnAtomicBatchIsStoredWhenOneJobIsWrong(t *testing.T) {
	for _, bad := range []string{`{}`, `7`, `{"jobType":"NOBODYS_JOB"}`, `{"jobType":"B","idempotencyKey":"k"}`, `nope`, `{"jobType":"A"`} {
		for _, batch := range []string{`[{"jobType":"A","idempotencyKey":"k"},` + bad + `]`, `[` + bad + `,{"jobType":"A","idempotencyKey":"k"}]`} {
			l := newLedger()
			answer := send(newAPI(t, l), "POST", "/jobs/batch", batch)
			require.Contains(t, []int{400, 422}, answer.Code, batch)
			require.Empty(t, l.submitted, batch)
		}
	}
}

// The same jobs are found in a body however it is cut into pieces and wherever it has
// white space.
func TestAnArrayIsFoundInAnyPieces(t *testing.T) {
	payloads := []string{`"]"`, `"\""`, `"\\"`, `"{[\\\"]}"`, `[1,[2,{"a":[]}]]`, `-1.5e+7`, `true`, `{"a":"b","c":[{}]}`, `""`, `"` + strings.Repeat("x", 3000) + `"`}
	var body strings.Builder
	blanks := []string{"", " ", "\n", "\t\r\n "}
	for i, payload := range payloads {
		fmt.Fprintf(&body, `,%s{"jobType":"A",%s"payload":%s%s}%s`, blanks[i%4], blanks[(i+1)%4], payload, blanks[(i+2)%4], blanks[(i+3)%4])
	}
	text := " [" + body.String()[1:] + "]\n"
	for _, path := range []string{"/jobs/batch", "/jobs/batch?atomic=false"} {
		l := newLedger()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, iotest.OneByteReader(strings.NewReader(text)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		newAPI(t, l).ServeHTTP(w, r)
		require.Less(t, w.Code, 300, w.Body.String())
		require.Len(t, l.submitted, len(payloads))
		var found []string
		for _, s := range l.submitted {
			found = append(found, string(s.Payload))
		}
		require.ElementsMatch(t, payloads, found)
	}
}

func TestBrokenArraysAreRefusedWithTheirPlace(t *testing.T) {
	for body, where := range map[string]string{
		` `:                      "the body is empty",
		"[\n":                    "unexpected end of JSON input: line 2, column 1",
		`[{"jobType":"A"}`:       "unexpected end of JSON input: line 1, column 17",
		`[{"jobType":"A]`:        "unexpected end of JSON input: line 1, column 16",
		`[{"jobType":"A"},]`:     "invalid character ']' looking for beginning of value: line 1, column 18",
		`[,]`:                    "invalid character ',' looking for beginning of value: line 1, column 2",
		`[{"jobType":"A"}{}]`:    "invalid character '{' after array element: line 1, column 17",
		`[{"jobType":"A"}]]`:     "invalid character ']' after top-level value: line 1, column 18",
		"[]\n[]":                 "invalid character '[' after top-level value: line 2, column 1",
		"[{\"jobType\":\n[}]}]":  "invalid character '}' looking for beginning of value: line 2, column 2",
		"[{\"jobType\":\"\xff\"": "unexpected end of JSON input: line 1, column 16",
		"[\"\xff\"]":             "the body is not UTF-8: line 1, column 3",
		`["` + "\x00" + `"]`:     `invalid character '\x00' in string literal: line 1, column 3`,
		`[` + strings.Repeat("[", 101) + strings.Repeat("]", 102): "the body is nested more than 100 levels deep: line 1, column 102",
	} {
		answer := send(newAPI(t, newLedger()), "POST", "/jobs/batch", body)
		require.Equal(t, 400, answer.Code, body)
		var told struct{ Detail string }
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
		require.Contains(t, told.Detail, where, body)
	}
}

func TestABatchCarriesTheTraceContextToEveryJob(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, path := range []string{"/jobs/batch", "/jobs/batch?atomic=false"} {
		for _, headers := range [][]string{{"Content-Type: application/json"}, ndjson} {
			l := newLedger()
			body := minimal
			if len(headers[0]) != len(ndjson[0]) {
				body = "[" + minimal + "]"
			}
			send(newAPI(t, l), "POST", path, body, append(headers, "traceparent: "+parent)...)
			require.Len(t, l.submitted, 1)
			require.Equal(t, job.Trace{Parent: parent}, l.submitted[0].Trace)
		}
	}
}

// FuzzBatch compares the two formats, and both with encoding/json.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[` + minimal + `]`, minimal, minimal + "\n" + minimal, `[{}, 7 ,"]",{"jobType":"A","payload":"\\\"]"}]`, `[[`, `[1 2]`, "[1,\n]",
		`[{"jobType":"A","idempotencyKey":"k"},{"jobType":"B","idempotencyKey":"k"}]`, "\xef\xbb\xbf[]", "[\xff]", `["\ud800"]`, "\n\n{}\r\n", "nope", `[{"a":}]`, `[1]]`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	l := newLedger()
	h := undocumented(l)
	f.Fuzz(func(t *testing.T, body []byte, atomic bool) {
		path := fmt.Sprintf("/jobs/batch?atomic=%t", atomic)
		l.forget()
		answer := send(h, "POST", path, string(body), "Content-Type: application/json")
		require.Less(t, answer.Code, 500)
		require.True(t, json.Valid(answer.Body.Bytes()))
		var all []json.RawMessage
		isArray := json.Unmarshal(body, &all) == nil && all != nil
		if answer.Code < 300 {
			require.True(t, isArray, "only arrays are accepted")
		} else {
			require.Empty(t, l.submitted)
		}
		if isArray && !atomic && answer.Code == 200 {
			var told struct{ Results []struct{ Job any } }
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
			require.Len(t, told.Results, len(all))
			l.forget()
			requireAsAlone(t, h, all, told.Results)
		}

		l.forget()
		answer = send(h, "POST", path, string(body), ndjson...)
		require.Less(t, answer.Code, 500)
		if answer.Code >= 300 {
			require.True(t, atomic)
			require.Empty(t, l.submitted)
			return
		}
		accepted := 0
		for line := range strings.Lines(answer.Body.String()) {
			var told struct{ Job any }
			require.NoError(t, json.Unmarshal([]byte(line), &told))
			if told.Job != nil {
				accepted++
			}
		}
		require.GreaterOrEqual(t, accepted, len(l.submitted))
		if !atomic {
			require.Contains(t, answer.Body.String(), `{"done":true,`)
		}
	})
}

// requireAsAlone requires that a batch has the same results as its items submitted
// alone, in order.
func requireAsAlone(t *testing.T, h http.Handler, items []json.RawMessage, results []struct{ Job any }) {
	t.Helper()
	for i, item := range items {
		alone := send(h, "POST", "/jobs", string(item), "Content-Type: application/json")
		require.Equal(t, alone.Code == 202, results[i].Job != nil, "item %d: %s", i, alone.Body)
	}
}
