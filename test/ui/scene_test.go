package ui

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// Tokens of the tested server. They may do what their names say.
const (
	observer = "observer-0123456789abcdef0123456789"
	reader   = "payloads-0123456789abcdef0123456789" // observe and payloads
	ofShop   = "of-shop-0123456789abcdef0123456789"  // everything, but for the tenant shop only
)

// What nobody may see who may not.
const (
	secretOfPayload = "canary-in-a-payload"
	otherTenant     = "warehouse"
)

// hostile is text that must stay text.
const hostile = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202Eright to left\u202C {{.}} ${7*7}"

// scene is an orchestrator with its database.
type scene struct {
	*rig.Orchestrator
	origin string
}

// newScene starts an orchestrator with the built-in handlers and those of the end-to-end tests.
func newScene(t testing.TB, settings ...string) *scene {
	t.Helper()
	return sceneOn(t, database(t, postgres.server.URL()), settings...)
}

func sceneOn(t testing.TB, url string, settings ...string) *scene {
	t.Helper()
	o := rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
		"database.url=" + url,
		"worker.id=main",
		"worker.crash_policy=release",
		"log.format=json",
		"jobs.accept_unknown_types=true",
		"plugins.0.name=builtin", "plugins.0.path=" + filepath.Join(bin, "handlers"),
		"plugins.1.name=shop", "plugins.1.path=" + filepath.Join(bin, "testhandlers"), "plugins.1.concurrency=20",
		"security.tokens.0.name=observer", "security.tokens.0.token=" + observer, `security.tokens.0.scopes=["read", "observe"]`,
		"security.tokens.1.name=reader", "security.tokens.1.token=" + reader, `security.tokens.1.scopes=["read", "observe", "payloads"]`,
		"security.tokens.2.name=shop", "security.tokens.2.token=" + ofShop, "security.tokens.2.tenant=shop",
		`security.tokens.2.scopes=["submit", "read", "observe", "operate", "payloads"]`,
	}, settings...)...)
	rigtest.Start(t, o)
	return &scene{Orchestrator: o, origin: "http://" + o.Address}
}

// database makes an empty database on a server. The orchestrator brings the schema.
func database(t testing.TB, server string) string {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), server)
	require.NoError(t, err)
	name := "ui_" + strings.ToLower(rand.Text())
	_, err = admin.Exec(t.Context(), "create database "+name)
	require.NoError(t, err)
	require.NoError(t, admin.Close(t.Context()))
	u, err := url.Parse(server)
	require.NoError(t, err)
	u.Path = "/" + name
	return u.String()
}

// call calls the API as the operator.
func (s *scene) call(t testing.TB, method, path string, body any, want int) {
	t.Helper()
	require.NoError(t, s.Call(t.Context(), method, path, body, want, nil))
}

// submit submits a job, from the text of its JSON, and returns its id.
func (s *scene) submit(t testing.TB, submission string) string {
	t.Helper()
	var accepted struct{ JobID string }
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs", json.RawMessage(submission), http.StatusAccepted, &accepted))
	return accepted.JobID
}

// attempts is how many attempts of a job have ended.
func (s *scene) attempts(t testing.TB, id string) int {
	t.Helper()
	var inspected struct{ Attempts []struct{} }
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/jobs/"+id, nil, http.StatusOK, &inspected))
	return len(inspected.Attempts)
}

// cast are jobs of a scene that tests ask for, by what they are.
type cast map[string]string

// everyday is a scene as a shop may have it: some jobs wait, run and have ended, some cannot
// succeed. It has nothing that would look odd in a picture.
func everyday(t testing.TB) (*scene, cast) {
	t.Helper()
	s := newScene(t, "plugins.1.types=[\"RESIZE_IMAGE\", \"CHARGE_CARD\", \"IMPORT_ORDERS\"]",
		"plugins.1.env.TYPES=RESIZE_IMAGE CHARGE_CARD IMPORT_ORDERS", "plugins.1.limits.memory=256MiB")
	jobs := cast{
		"retrying": s.submit(t, `{"jobType": "CHARGE_CARD", "payload": {"error": "POST https://pay.example.com: 503 try again", "millis": 800}, "maxAttempts": 6, "tags": ["order:4711"]}`),
		"running":  s.submit(t, `{"jobType": "IMPORT_ORDERS", "payload": {"when": "/nonexistent"}, "timeout": "2h", "tags": ["nightly"]}`),
	}
	s.submit(t, `{"jobType": "SEND_EMAIL", "payload": {"to": "ann@example.com", "subject": "Your order", "text": "It is on its way."}, "delay": "26h"}`)
	s.submit(t, `{"jobType": "RESIZE_IMAGE", "payload": {}, "hold": true, "tags": ["product:77"]}`)
	batch := []rig.Submission{}
	add := func(n int, jobType string, payload func(i int) map[string]any) {
		for i := range n {
			batch = append(batch, rig.Submission{JobType: jobType, MaxAttempts: 1, Payload: payload(i)})
		}
	}
	add(600, "RESIZE_IMAGE", func(i int) map[string]any { return map[string]any{"millis": 20 + i%40} })
	add(120, "CHARGE_CARD", func(i int) map[string]any { return map[string]any{"millis": 100 + i%70} })
	add(21, "CHARGE_CARD", func(i int) map[string]any {
		return map[string]any{"error": fmt.Sprintf("card %d was declined", 4000+i)}
	})
	add(9, "IMPORT_ORDERS", func(i int) map[string]any {
		return map[string]any{"error": fmt.Sprintf("order %d has no address", 4711+i)}
	})
	add(4, "RESIZE_IMAGE", func(i int) map[string]any {
		return map[string]any{"error": fmt.Sprintf("dial tcp 10.0.0.%d:9000: connection refused", i)}
	})
	_, err := s.SubmitBatch(t.Context(), batch)
	require.NoError(t, err)
	var workflow struct{ WorkflowID string }
	require.NoError(t, s.Call(t.Context(), http.MethodPost, "/workflows", json.RawMessage(`{"name": "order 4711", "jobs": [
		{"name": "charge", "jobType": "CHARGE_CARD", "payload": {}}, {"name": "picture", "jobType": "RESIZE_IMAGE", "payload": {}},
		{"name": "pack", "after": ["charge", "picture"], "jobType": "IMPORT_ORDERS", "payload": {"error": "the label printer is offline"}, "maxAttempts": 1},
		{"name": "ship", "after": ["pack"], "jobType": "IMPORT_ORDERS", "payload": {}},
		{"name": "tell the customer", "after": ["ship"], "jobType": "RESIZE_IMAGE", "payload": {}}]}`), http.StatusAccepted, &workflow))
	jobs["workflow"] = workflow.WorkflowID
	require.Eventually(t, func() bool { return s.state(t)["open"] == 2 }, patience, glance, "all others have ended")
	require.Eventually(t, func() bool { return s.attempts(t, jobs["retrying"]) >= 3 }, patience, glance)
	return s, jobs
}

// full is a scene with something on every page.
func full(t testing.TB, settings ...string) (*scene, cast) {
	t.Helper()
	s := newScene(t, settings...)
	text, err := json.Marshal(hostile)
	require.NoError(t, err)
	jobs := cast{
		"succeeded": s.submit(t, `{"jobType": "WORK", "payload": {"result": {"n": 12345678901234567890.10}}, "tags": ["nightly", "invoice:42"]}`),
		"running":   s.submit(t, `{"jobType": "WORK", "payload": {"when": "/nonexistent"}, "timeout": "2h", "tags": ["long"]}`),
		"scheduled": s.submit(t, `{"jobType": "SEND_EMAIL", "payload": {"to": "ann@example.com", "subject": "`+secretOfPayload+`", "text": "hello"}, "delay": "26h"}`),
		"held":      s.submit(t, `{"jobType": "HTTP_REQUEST", "payload": {"method": "GET", "url": "https://example.com/`+secretOfPayload+`"}, "hold": true}`),
		"queued":    s.submit(t, `{"jobType": "NOBODY_SERVES_THIS", "payload": {"secret": "`+secretOfPayload+`"}, "priority": 5}`),
		"retrying":  s.submit(t, `{"jobType": "WORK", "payload": {"error": "the ledger is locked by transfer 77"}, "maxAttempts": 9}`),
		"canceled":  s.submit(t, `{"jobType": "WORK", "payload": {}, "hold": true}`),
		"dead":      s.submit(t, `{"jobType": "WORK", "payload": {"error": "order 4711 has no address", "result": "`+secretOfPayload+`"}, "maxAttempts": 1, "tags": ["order:4711"]}`),
		"hostile":   s.submit(t, `{"jobType": "WORK", "payload": {"error": `+string(text)+`, "result": `+string(text)+`}, "maxAttempts": 1, "tags": ["<b>bold</b>"]}`),
		"large":     s.submit(t, `{"jobType": "LARGE", "payload": {"text": "`+strings.Repeat("0123456789abcdef", 60<<10)+`"}, "hold": true}`),
		"shop":      s.submit(t, `{"jobType": "WORK", "tenant": "shop", "payload": {"error": "shop 1 is closed"}, "maxAttempts": 1}`),
		"other":     s.submit(t, `{"jobType": "WORK", "tenant": "`+otherTenant+`", "payload": {"error": "`+otherTenant+` 9 burns", "result": "`+otherTenant+`"}, "maxAttempts": 1, "tags": ["`+otherTenant+`-tag"]}`),
		"logs":      s.submit(t, `{"jobType": "LOG", "payload": {"result": "done"}}`),
		"crashed":   s.submit(t, `{"jobType": "CRASH", "payload": {}, "maxAttempts": 1}`),
	}
	s.call(t, http.MethodPost, "/jobs/"+jobs["canceled"]+"/cancel", nil, http.StatusOK)
	var batch []rig.Submission
	for i := range 60 {
		why := []string{"order %d has no address", "card %d was declined: 51 insufficient funds", "dial tcp 10.0.0.%d:5432: connection refused"}[i%7%3]
		batch = append(batch, rig.Submission{JobType: "WORK", MaxAttempts: 1, Payload: map[string]any{"error": fmt.Sprintf(why, i)}})
	}
	_, err = s.SubmitBatch(t.Context(), batch)
	require.NoError(t, err)

	s.call(t, http.MethodPut, "/schedules/nightly-report", json.RawMessage(`{"cron": "30 6 * * 1-5", "zone": "Europe/Berlin", "job": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`), http.StatusOK)
	s.call(t, http.MethodPut, "/debug/limits/type/SEND_EMAIL", json.RawMessage(`{"concurrency": 5, "rate": "100/1m"}`), http.StatusOK)
	s.call(t, http.MethodPut, "/debug/pauses/type/HTTP_REQUEST", json.RawMessage(`{"reason": "the partner's API is down"}`), http.StatusOK)
	s.call(t, http.MethodPost, "/workflows", json.RawMessage(`{"jobs": [{"name": "first", "jobType": "WORK", "payload": {}}, {"name": "second", "after": ["first"], "jobType": "WORK", "payload": {"error": "no"}, "maxAttempts": 1}]}`), http.StatusAccepted)
	for name, status := range map[string]string{
		"succeeded": "COMPLETED", "running": "RUNNING", "dead": "FAILED", "hostile": "FAILED", "shop": "FAILED", "other": "FAILED", "logs": "COMPLETED", "crashed": "FAILED",
	} {
		rigtest.Await(t, s.Orchestrator, jobs[name], status)
	}
	// One that runs, one that is tried again and again, and one that nobody serves.
	require.Eventually(t, func() bool { return s.state(t)["open"] == 3 }, patience, glance, "all others have ended")
	return s, jobs
}

// soon is how long people wait for a page before they think that it is broken: three seconds,
// which tests of api/ui hold it to, and what a busy machine with a browser takes.
const soon = 10 * time.Second
