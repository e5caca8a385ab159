package api_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/submission"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// submitted sends a body that must be accepted, and returns the submission that Jobs
// received.
func submitted(t *testing.T, body string, headers ...string) job.Submission {
	t.Helper()
	l := newLedger()
	answer := send(newAPI(t, l), "POST", "/jobs", body, headers...)
	require.Equal(t, 202, answer.Code, answer.Body.String())
	require.Len(t, l.submitted, 1)
	return l.submitted[0]
}

func TestDefaultsAreResolved(t *testing.T) {
	s := submitted(t, `{"jobType":"A"}`)
	require.Equal(t, byte(7), s.ID[6]>>4, "the id is a UUIDv7")
	s.ID = job.ID{}
	require.Equal(t, job.Submission{
		Type: "A", Tenant: job.DefaultTenant, Payload: json.RawMessage("null"),
		MaxAttempts: 4, Timeout: 30 * time.Second, Tags: []string{},
	}, s)
}

func TestNullIsAbsent(t *testing.T) {
	s := submitted(t, `{"jobType":"A","payload":null,"idempotencyKey":null,"priority":null,"runAt":null,"delay":null,"maxAttempts":null,"timeout":null,"tenant":null,"tags":null,"hold":null,"concurrencyKey":null,"concurrencyLimit":null,"onConflict":null,"fairnessKey":null,"expiresAt":null,"ttl":null,"uniqueFor":null,"uniqueWhile":null,"uniqueBy":null,"callbackUrl":null}`)
	absent := submitted(t, `{"jobType":"A"}`)
	s.ID, absent.ID = job.ID{}, job.ID{}
	require.Equal(t, absent, s)
}

func TestEverythingAskedForIsSubmitted(t *testing.T) {
	s := submitted(t, `{"jobType":"A","idempotencyKey":"k","priority":-32767,"runAt":"2030-01-31T12:00:00.5+02:00","maxAttempts":1000,"timeout":"1ms","tenant":"acme","tags":["x","y"],"hold":true}`)
	require.True(t, s.RunAt.Equal(time.Date(2030, 1, 31, 10, 0, 0, 500e6, time.UTC)))
	s.ID, s.RunAt = job.ID{}, time.Time{}
	require.Equal(t, job.Submission{
		Type: "A", Tenant: "acme", Payload: json.RawMessage("null"), IdempotencyKey: "k", Priority: -32767,
		Hold: true, MaxAttempts: 1000, Timeout: time.Millisecond, Tags: []string{"x", "y"},
	}, s)
	require.Equal(t, 90*time.Minute, submitted(t, `{"jobType":"A","delay":"1h30m"}`).Delay)
}

func TestSharingExpiryAndUniquenessAreSubmitted(t *testing.T) {
	s := submitted(t, `{"jobType":"A","concurrencyKey":"customer:42","concurrencyLimit":3,"onConflict":"cancel_oldest","fairnessKey":"eu","expiresAt":"9000-01-01T00:00:00+02:00","delay":"1h"}`)
	require.Equal(t, job.Terms{ConcurrencyKey: "customer:42", ConcurrencyLimit: 3, OnConflict: job.ConflictCancelOldest, FairnessKey: "eu"}, s.Terms)
	require.Equal(t, "8999-12-31T22:00:00Z", s.ExpiresAt.UTC().Format(time.RFC3339))
	require.Nil(t, s.Unique)

	s = submitted(t, `{"jobType":"A","ttl":"2h","delay":"1h","uniqueFor":"24h"}`)
	require.Equal(t, 2*time.Hour, s.TTL)
	require.Equal(t, &job.Unique{For: 24 * time.Hour, Digest: submission.Digest("default", "A", []byte("null"), nil)}, s.Unique)

	s = submitted(t, `{"jobType":"A","tenant":"acme","uniqueBy":["/id"],"uniqueWhile":"open","payload":{"id":7,"at":"now"}}`)
	require.Equal(t, &job.Unique{WhileOpen: true, Digest: submission.Digest("acme", "A", []byte(`{"id":7}`), []job.Pointer{{"id"}})}, s.Unique)
}

func TestAReplayIsAnsweredAfterItsExpiry(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	body := func(expiresAt time.Time) string {
		return `{"jobType":"A","idempotencyKey":"k","expiresAt":"` + expiresAt.UTC().Format(time.RFC3339Nano) + `"}`
	}
	first := send(h, "POST", "/jobs", body(time.Now().Add(time.Hour)))
	require.Equal(t, 202, first.Code, first.Body.String())
	again := send(h, "POST", "/jobs", body(time.Now().Add(-time.Hour)))
	require.Equal(t, 202, again.Code, again.Body.String())
	require.Equal(t, first.Header()["Location"], again.Header()["Location"])
}

func TestASubmissionThatIsKeptOutNamesTheJobThatWasThere(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	const unique = `{"jobType":"A","uniqueFor":"1h"}`
	first := send(h, "POST", "/jobs", unique)
	require.NotContains(t, first.Body.String(), "duplicate")
	again := send(h, "POST", "/jobs", unique)
	require.Equal(t, 202, again.Code)
	require.Equal(t, first.Header().Get("Location"), again.Header().Get("Location"))
	require.JSONEq(t, strings.TrimSuffix(strings.TrimSpace(first.Body.String()), "}")+`,"duplicate":true}`, again.Body.String())

	batch := send(h, "POST", "/jobs/batch", `[`+unique+`,{"jobType":"A"}]`)
	require.Equal(t, 202, batch.Code)
	require.Contains(t, batch.Body.String(), `"accepted":2`, "a duplicate counts")
	require.Equal(t, 1, strings.Count(batch.Body.String(), `"duplicate":true`))
	require.Len(t, l.submitted, 2)
}

func TestPayloadIsKeptToTheLetter(t *testing.T) {
	for _, payload := range []string{
		`null`, `true`, `""`, `[]`, `1e400`, `12345678901234567890.10`, `"{\"sleepSeconds\": 5}"`,
		"{ \"a\" :\t1,\r\n\"a\" : 2 }", `"\u0000 \ud800 \/ <&>   é"`, strings.Repeat("[", 99) + strings.Repeat("]", 99),
		`"[[[[\"[[[["`,
	} {
		require.Equal(t, payload, string(submitted(t, `{"payload": `+payload+` , "jobType":"A"}`).Payload))
	}
}

func TestBodyMayHaveExactlyTheLimit(t *testing.T) {
	body := `{"jobType":"A","payload":"` + strings.Repeat("x", 4096-28) + `"}`
	require.Len(t, body, 4096)
	submitted(t, body)
	require.Equal(t, 413, send(newAPI(t, newLedger()), "POST", "/jobs", body+" ").Code)
}

func TestKeyIsTheSameHoweverItIsSent(t *testing.T) {
	for _, c := range []struct{ body, header, key string }{
		{`{"jobType":"A","idempotencyKey":"k 1"}`, "", "k 1"},
		{`{"jobType":"A"}`, `Idempotency-Key: k 1`, "k 1"},
		{`{"jobType":"A"}`, `Idempotency-Key: "k 1"`, "k 1"},
		{`{"jobType":"A","idempotencyKey":"k 1"}`, `Idempotency-Key: "k 1"`, "k 1"},
		{`{"jobType":"A"}`, `Idempotency-Key: "a\"b\\c"`, `a"b\c`},
		{`{"jobType":"A"}`, `Idempotency-Key: a"b\c`, `a"b\c`},
		{`{"jobType":"A"}`, `Idempotency-Key: ` + strings.Repeat("x", 255), strings.Repeat("x", 255)},
	} {
		var headers []string
		if c.header != "" {
			headers = append(headers, c.header)
		}
		require.Equal(t, c.key, submitted(t, c.body, headers...).IdempotencyKey, c.header)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	for _, header := range []string{
		``, `"`, `""`, `"a`, `"a"b"`, `"a\b"`, `"a"; p=1`, "\"a\tb\"", "a\x00b", "\xff", strings.Repeat("x", 256), strings.Repeat("ü", 128),
	} {
		answer := send(newAPI(t, newLedger()), "POST", "/jobs", `{"jobType":"A"}`, "Idempotency-Key: "+header)
		require.Equal(t, 422, answer.Code, "%q", header)
		require.Contains(t, answer.Body.String(), `"location":"header.Idempotency-Key"`)
	}
	twice := send(newAPI(t, newLedger()), "POST", "/jobs", `{"jobType":"A"}`, "Idempotency-Key: a", "Idempotency-Key: a")
	require.Equal(t, 422, twice.Code)
}

func TestReplayIsIndistinguishable(t *testing.T) {
	h := newAPI(t, newLedger())
	first := send(h, "POST", "/jobs", minimal, "Idempotency-Key: k")
	again := send(h, "POST", "/jobs", minimal, `Idempotency-Key: "k"`)
	require.Equal(t, 202, first.Code)
	require.Equal(t, first.Code, again.Code)
	require.Equal(t, first.Header(), again.Header())
	require.Equal(t, first.Body.String(), again.Body.String())

	other := send(h, "POST", "/jobs", `{"jobType":"SLEEP_JOB"}`, "Idempotency-Key: k")
	require.Equal(t, 422, other.Code)
	require.Contains(t, other.Body.String(), `"location":"#/idempotencyKey"`)
	elsewhere := send(h, "POST", "/jobs", `{"jobType":"SLEEP_JOB","tenant":"acme"}`, "Idempotency-Key: k")
	require.Equal(t, 202, elsewhere.Code)
	require.NotEqual(t, first.Header()["Location"], elsewhere.Header()["Location"])
}

func TestReplayShowsTheCurrentStatus(t *testing.T) {
	l := newLedger()
	h := newAPI(t, l)
	send(h, "POST", "/jobs", minimal, "Idempotency-Key: k")
	for id, v := range maps.Clone(l.jobs) {
		v.State = job.Succeeded
		l.jobs[id] = v
	}
	again := send(h, "POST", "/jobs", minimal, "Idempotency-Key: k")
	require.Contains(t, again.Body.String(), `"status":"COMPLETED"`)
}

func TestWrongValuesAreRefusedAtTheirPlace(t *testing.T) {
	for _, c := range []struct{ member, place string }{
		{`"jobType":null`, "#/jobType"},
		{`"jobType":""`, "#/jobType"},
		{`"jobType":7`, "#/jobType"},
		{`"jobType":"` + strings.Repeat("ü", 201) + `"`, "#/jobType"},
		{`"jobType":"\u0000"`, "#/jobType"},
		{`"jobType":"\ud800"`, "#/jobType"},
		{`"jobType":"\u001b[2J"`, "#/jobType"},
		{`"jobType":"A","tenant":"\udfff"`, "#/tenant"},
		{`"jobType":"A","tenant":"` + strings.Repeat("x", 201) + `"`, "#/tenant"},
		{`"jobType":"A","idempotencyKey":"` + strings.Repeat("ü", 128) + `"`, "#/idempotencyKey"},
		{`"jobType":"A","tags":["a","\u0000"]`, "#/tags/1"},
		{`"jobType":"A","tags":[null]`, "#/tags/0"},
		{`"jobType":"A","tags":["` + strings.Repeat("x", 101) + `"]`, "#/tags/0"},
		{`"jobType":"A","tags":[` + strings.Repeat(`"a",`, 20) + `"a"]`, "#/tags"},
		{`"jobType":"A","tags":"a"`, "#/tags"},
		{`"jobType":"A","priority":-32768`, "#/priority"},
		{`"jobType":"A","priority":32768`, "#/priority"},
		{`"jobType":"A","priority":1.0`, "#/priority"},
		{`"jobType":"A","priority":"1"`, "#/priority"},
		{`"jobType":"A","maxAttempts":0`, "#/maxAttempts"},
		{`"jobType":"A","maxAttempts":1001`, "#/maxAttempts"},
		{`"jobType":"A","maxAttempts":99999999999999999999`, "#/maxAttempts"},
		{`"jobType":"A","timeout":"0s"`, "#/timeout"},
		{`"jobType":"A","timeout":"24h1ns"`, "#/timeout"},
		{`"jobType":"A","delay":"30"`, "#/delay"},
		{`"jobType":"A","delay":"87601h"`, "#/delay"},
		{`"jobType":"A","delay":"1s","runAt":"2030-01-01T00:00:00Z"`, "#/delay"},
		{`"jobType":"A","runAt":"2030-01-01"`, "#/runAt"},
		{`"jobType":"A","runAt":"2030-01-01T24:00:00Z"`, "#/runAt"},
		{`"jobType":"A","hold":1`, "#/hold"},
		{`"jobType":"A","concurrencyKey":""`, "#/concurrencyKey"},
		{`"jobType":"A","concurrencyKey":42`, "#/concurrencyKey"},
		{`"jobType":"A","concurrencyKey":"a\u0000"`, "#/concurrencyKey"},
		{`"jobType":"A","concurrencyKey":"` + strings.Repeat("ü", 201) + `"`, "#/concurrencyKey"},
		{`"jobType":"A","concurrencyKey":"k","concurrencyLimit":0`, "#/concurrencyLimit"},
		{`"jobType":"A","concurrencyKey":"k","concurrencyLimit":100001`, "#/concurrencyLimit"},
		{`"jobType":"A","concurrencyKey":"k","concurrencyLimit":"1"`, "#/concurrencyLimit"},
		{`"jobType":"A","concurrencyLimit":1`, "#/concurrencyLimit"},
		{`"jobType":"A","concurrencyKey":null,"concurrencyLimit":1`, "#/concurrencyLimit"},
		{`"jobType":"A","concurrencyKey":"k","onConflict":"QUEUE"`, "#/onConflict"},
		{`"jobType":"A","concurrencyKey":"k","onConflict":true`, "#/onConflict"},
		{`"jobType":"A","onConflict":"queue"`, "#/onConflict"},
		{`"jobType":"A","fairnessKey":""`, "#/fairnessKey"},
		{`"jobType":"A","fairnessKey":"` + strings.Repeat("x", 201) + `"`, "#/fairnessKey"},
		{`"jobType":"A","expiresAt":"tomorrow"`, "#/expiresAt"},
		{`"jobType":"A","expiresAt":"2020-01-01T00:00:00Z"`, "#/expiresAt"},
		{`"jobType":"A","expiresAt":"9000-01-01T00:00:00Z","ttl":"1h"`, "#/ttl"},
		{`"jobType":"A","expiresAt":"9000-01-01T00:00:00Z","runAt":"9000-01-01T00:00:00Z"`, "#/expiresAt"},
		{`"jobType":"A","expiresAt":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `","delay":"2h"`, "#/expiresAt"},
		{`"jobType":"A","ttl":"0s"`, "#/ttl"},
		{`"jobType":"A","ttl":60`, "#/ttl"},
		{`"jobType":"A","ttl":"87601h"`, "#/ttl"},
		{`"jobType":"A","ttl":"1h","delay":"1h"`, "#/ttl"},
		{`"jobType":"A","ttl":"1h","runAt":"9000-01-01T00:00:00Z"`, "#/ttl"},
		{`"jobType":"WEBHOOK"`, "#/jobType"},
		{`"jobType":"A","callbackUrl":""`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":7`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"http://example.com:99999/"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"/hook"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"ftp://example.com/hook"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https:///hook"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https://:80/hook"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https://user:canary@example.com/"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https://example.com/\u0000"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https://example.com/a b"`, "#/callbackUrl"},
		{`"jobType":"A","callbackUrl":"https://example.com/` + strings.Repeat("x", 2000) + `"`, "#/callbackUrl"},
		{`"jobType":"A","uniqueFor":"0s"`, "#/uniqueFor"},
		{`"jobType":"A","uniqueFor":"87601h"`, "#/uniqueFor"},
		{`"jobType":"A","uniqueFor":3600`, "#/uniqueFor"},
		{`"jobType":"A","uniqueWhile":"running"`, "#/uniqueWhile"},
		{`"jobType":"A","uniqueWhile":true`, "#/uniqueWhile"},
		{`"jobType":"A","uniqueFor":"1h","uniqueWhile":"open"`, "#/uniqueWhile"},
		{`"jobType":"A","uniqueBy":["/a"]`, "#/uniqueBy"},
		{`"jobType":"A","uniqueFor":null,"uniqueBy":["/a"]`, "#/uniqueBy"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":[]`, "#/uniqueBy"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":"/a"`, "#/uniqueBy"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":["/a","b"]`, "#/uniqueBy/1"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":["/a~b"]`, "#/uniqueBy/0"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":[1]`, "#/uniqueBy/0"},
		{`"jobType":"A","uniqueFor":"1h","uniqueBy":[` + strings.Repeat(`"/a",`, 10) + `"/a"]`, "#/uniqueBy"},
		{`"jobType":"A","jobType":"B"`, "#/jobType"},
		{`"jobType":"A","jobtype":"B"`, "#/jobtype"},
		{`"jobType":"A","` + strings.Repeat("n", 1000) + `":1`, "#/" + strings.Repeat("n", 100) + "%E2%80%A6"},
	} {
		l := newLedger()
		answer := send(newAPI(t, l), "POST", "/jobs", "{"+c.member+"}")
		require.Equal(t, 422, answer.Code, c.member)
		require.Empty(t, l.submitted)
		var told struct {
			Errors []struct{ Location, Message string }
		}
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &told))
		require.Len(t, told.Errors, 1, c.member)
		require.Equal(t, c.place, told.Errors[0].Location, c.member)
	}
}

func TestAnswerToManyMistakesIsBounded(t *testing.T) {
	answer := send(newAPI(t, newLedger()), "POST", "/jobs", `{"a":1`+strings.Repeat(`,"a":1`, 600)+`}`)
	require.Equal(t, 422, answer.Code)
	require.Equal(t, 20, strings.Count(answer.Body.String(), `"location"`))
}

func TestOnlyJSONIsAccepted(t *testing.T) {
	for contentType, code := range map[string]int{
		"application/json": 202, "application/JSON; charset=UTF-8": 202,
		"application/json; charset=latin1": 415, "application/ld+json": 415, "text/plain": 415, "": 415, ";": 415,
	} {
		require.Equal(t, code, send(newAPI(t, newLedger()), "POST", "/jobs", minimal, "Content-Type: "+contentType).Code, contentType)
	}
	require.Equal(t, 415, send(newAPI(t, newLedger()), "POST", "/jobs", minimal, "Content-Encoding: gzip").Code)
}

func TestTraceContextIsCarried(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		headers []string
		want    job.Trace
	}{
		{[]string{"traceparent: " + parent, "tracestate: a=1", "tracestate: b=2"}, job.Trace{Parent: parent, State: "a=1,b=2"}},
		{[]string{"traceparent: " + parent}, job.Trace{Parent: parent}},
		{[]string{"traceparent: " + parent, "baggage: a=1"}, job.Trace{Parent: parent, Baggage: "a=1"}},
		{[]string{"baggage: a=1 , =,b,c = 2;p=3", "baggage: \xff=1,d=%20"}, job.Trace{Baggage: "a=1,c = 2;p=3,d=%20"}},
		{[]string{"baggage: a=" + strings.Repeat("x", 1023)}, job.Trace{}},
		{[]string{"baggage: a=1,b=" + strings.Repeat("x", 1018)}, job.Trace{Baggage: "a=1,b=" + strings.Repeat("x", 1018)}},
		{[]string{"baggage: a=1,b=" + strings.Repeat("x", 1019) + ",c=2"}, job.Trace{Baggage: "a=1"}},
		{[]string{"traceparent: " + parent, "tracestate: a=\x01"}, job.Trace{Parent: parent}},
		{[]string{"traceparent: " + parent, "tracestate: a=" + strings.Repeat("x", 511)}, job.Trace{Parent: parent}},
		{[]string{"tracestate: a=1"}, job.Trace{}},
		{[]string{"traceparent: " + parent, "traceparent: " + parent}, job.Trace{}},
		{[]string{"traceparent: " + strings.ToUpper(parent)}, job.Trace{}},
		{[]string{"traceparent: 01" + parent[2:]}, job.Trace{Parent: parent}},
		{[]string{"traceparent: cc" + parent[2:] + "-what-the-future-has"}, job.Trace{Parent: parent}},
		{[]string{"traceparent: cc" + parent[2:] + "."}, job.Trace{}},
		{[]string{"traceparent: ff" + parent[2:]}, job.Trace{}},
		{[]string{"traceparent: " + parent[:53] + "fd"}, job.Trace{Parent: parent}},
		{[]string{"traceparent: " + parent[:53] + "03"}, job.Trace{Parent: parent[:53] + "03"}},
		{[]string{"traceparent: " + parent[:53] + "04"}, job.Trace{Parent: parent[:53] + "00"}},
		{[]string{"traceparent: " + parent, "tracestate: a"}, job.Trace{Parent: parent}},
		{[]string{"traceparent: 00-" + strings.Repeat("0", 32) + parent[35:]}, job.Trace{}},
		{[]string{"traceparent: " + parent[:36] + strings.Repeat("0", 16) + parent[52:]}, job.Trace{}},
		{[]string{"traceparent: " + parent + "-more"}, job.Trace{}},
		{[]string{"traceparent: " + parent + "-"}, job.Trace{}},
	} {
		require.Equal(t, c.want, submitted(t, minimal, c.headers...).Trace, c.headers)
	}
}

// Every accepted time must be presentable: JSON allows the years 0 to 9999, and
// answers are in UTC.
func TestATimeThatNoAnswerCouldShowIsRefused(t *testing.T) {
	for at, code := range map[string]int{
		"9999-12-31T23:59:59-23:59": 422, "0000-01-01T00:00:00+23:59": 422, "0001-01-01T00:00:00+00:01": 422,
		"9999-12-31T23:59:59Z": 202, "0001-01-01T00:00:00Z": 202,
	} {
		answer := send(newAPI(t, newLedger()), "POST", "/jobs", `{"jobType":"A","runAt":"`+at+`"}`)
		require.Equal(t, code, answer.Code, at)
	}
}
