package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// diary keeps acts and logins in memory.
type diary struct {
	diaryMu sync.Mutex
	acts    []job.Act
	// actFilter is that of the latest list, and actErr the result of every method.
	actFilter job.ActFilter
	actErr    error
}

func (d *diary) RecordAct(_ context.Context, act job.Act) error {
	d.diaryMu.Lock()
	defer d.diaryMu.Unlock()
	act.ID, act.At = int64(len(d.acts)+1), birth.Add(time.Duration(len(d.acts))*time.Second)
	d.acts = append(d.acts, act)
	return d.actErr
}

func (d *diary) Acts(_ context.Context, filter job.ActFilter) ([]job.Act, error) {
	d.diaryMu.Lock()
	defer d.diaryMu.Unlock()
	d.actFilter = filter
	newest := slices.Clone(d.acts)
	slices.Reverse(newest)
	if filter.After.ID != 0 {
		newest = slices.DeleteFunc(newest, func(a job.Act) bool { return a.ID >= filter.After.ID })
	}
	return newest[:min(len(newest), filter.Limit)], d.actErr
}

// written are the acts of a ledger.
func (d *diary) written() []job.Act {
	d.diaryMu.Lock()
	defer d.diaryMu.Unlock()
	return slices.Clone(d.acts)
}

func (*diary) BeginSession(context.Context, job.Login) error { return nil }
func (*diary) MakeLink(context.Context, job.Login) error     { return nil }
func (*diary) EndSession(context.Context, [32]byte) error    { return nil }
func (*diary) Session(context.Context, [32]byte) (job.Login, error) {
	return job.Login{}, job.ErrNoLogin
}

func (*diary) TakeLink(context.Context, [32]byte) (job.Login, error) {
	return job.Login{}, job.ErrNoLogin
}

// audited is a guarded API, and its ledger.
func audited(t *testing.T, access *guard.Access, given ...func(*ledger)) (*httptest.Server, *ledger) {
	t.Helper()
	var kept *ledger
	server, _ := guarded(t, guard.Config{Access: access}, append(given, func(l *ledger) { kept = l })...)
	return server, kept
}

func TestEveryOperationThatChangesSomethingHasAnAction(t *testing.T) {
	server, _ := audited(t, accessFor(false))
	ids := map[string]bool{}
	for route, o := range operations(t, server) {
		if strings.HasPrefix(route, "GET ") {
			continue
		}
		require.True(t, audit.Knows(o.OperationID), "%s: write the action of %s into api/audit/actions.go", route, o.OperationID)
		ids[o.OperationID] = true
	}
	require.Greater(t, len(ids), 30)
}

// TestEveryActIsWrittenDownOnce calls every route with every scope.
func TestEveryActIsWrittenDownOnce(t *testing.T) {
	server, _ := audited(t, accessFor(false))
	for _, route := range slices.Sorted(maps.Keys(operations(t, server))) {
		server, renew := renewing(t, accessFor(false)) // which writes down a few refusals in a minute
		for name, caller := range who {
			if strings.HasPrefix(route, "GET ") && name != "basic" {
				continue
			}
			t.Run(route+" by "+name, func(t *testing.T) {
				var kept *ledger
				renew(jobIn("dead"), func(l *ledger) { kept = l })
				answer := callRoute(t, server, route, caller.header)
				acts := kept.written()
				switch {
				case strings.HasPrefix(route, "GET "), route == "POST /schedules/preview", answer.status == 401:
					require.Empty(t, acts)
					return
				case answer.status == 403:
					require.Len(t, acts, 1, answer.body)
					require.True(t, strings.HasPrefix(acts[0].Result, "refused: it "), acts[0].Result)
				case scopes[route].scope == guard.Submit && (!may(caller.scopes, guard.Operate) || name == "none" || strings.HasPrefix(route, "POST /jobs ") ||
					slices.Contains([]string{"POST /jobs", "POST /jobs/batch", "POST /workflows"}, route)):
					require.Empty(t, acts, "clients are no operators")
					return
				case answer.status < 300 && slices.Contains([]string{"POST /jobs/{id}/erase", "POST /erasures"}, route):
					require.Empty(t, acts, "the statement writes it down")
					return
				case answer.status < 300:
					require.Len(t, acts, 1)
					require.Equal(t, "done", acts[0].Result)
				default:
					require.Len(t, acts, 1)
					require.NotEqual(t, "done", acts[0].Result, answer.body)
				}
				actor := "token " + name
				if name == "basic" {
					actor = "admin"
				}
				require.Equal(t, actor, acts[0].Actor)
				require.Contains(t, audit.Actions(), acts[0].Action)
				if caller.bound {
					require.Equal(t, "acme", acts[0].Tenant)
				}
				if strings.HasPrefix(route, "POST /jobs/{id}/") || strings.HasPrefix(route, "POST /debug/jobs/{id}/") || strings.HasPrefix(route, "PATCH /jobs/{id}") {
					require.NotNil(t, acts[0].JobID)
					require.Equal(t, strings.TrimPrefix(known, "/jobs/"), acts[0].JobID.String())
				}
			})
		}
	}
}

func TestAnActSaysWhatItWas(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body, reason string
		want                       job.Act
		filter                     string
	}{
		"a job": {"POST", known + "/cancel", "", "wrong input", job.Act{Action: "job.cancel", Tenant: "acme", Reason: "wrong input", Result: "done"}, ""},
		"many jobs": {
			"POST", "/dead-letter/retry?jobType=A&tenant=acme&limit=7", "", "",
			job.Act{Action: "dead-letter.requeue", Tenant: "acme", Count: new(int64(7)), Result: "done"},
			`{"jobType":"A","limit":"7"}`,
		},
		"a pause": {
			"PUT", "/debug/pauses/type/A%2FB", `{"reason": "the bank is away"}`, "",
			job.Act{Action: "pause.set", Reason: "the bank is away", Result: "done"},
			`{"name":"A/B","scope":"type"}`,
		},
		"a job submitted anew": {"POST", resubmit, "", "", job.Act{Action: "job.resubmit", Tenant: "acme", Result: "done"}, ""},
		"a command for a plugin": {
			"POST", "/debug/plugins/shop/commands", `{"command": "restart", "reason": "it leaks"}`, "",
			job.Act{Action: "plugin.command", Reason: "it leaks", Result: "Not Found"},
			`{"command":"restart","name":"shop"}`,
		},
		"two reasons": {
			"PUT", "/debug/pauses/all", `{"reason": "of the body"}`, "of the header", job.Act{Action: "pause.set", Reason: "of the body", Result: "done"}, "",
		},
		"a mistake in the body": {
			"PUT", "/debug/limits/type/A", `{"concurrency": -1}`, "", job.Act{Action: "limit.set", Result: "Unprocessable Entity"}, `{"name":"A","scope":"type"}`,
		},
		"a mistake in the query": {
			"POST", "/dead-letter/retry?limit=x", "", "", job.Act{Action: "dead-letter.requeue", Result: "Unprocessable Entity"}, `{"limit":"x"}`,
		},
		"nothing there":     {"DELETE", "/debug/pauses/type/A", "", "", job.Act{Action: "pause.end", Result: "Not Found: no such pause"}, `{"name":"A","scope":"type"}`},
		"too long a reason": {"POST", known + "/cancel", "", strings.Repeat("x", 501), job.Act{}, ""},
		"a name with a zero byte": {
			"DELETE", "/debug/pauses/type/A%00", "", "", job.Act{Action: "pause.end", Result: "Not Found: no such pause"}, "{\"name\":\"A\uFFFD\",\"scope\":\"type\"}",
		},
		"a dry run": {"PATCH", "/jobs?jobType=A&dryRun=true", `{"priority": 1}`, "", job.Act{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, ledger := audited(t, accessFor(false), func(l *kept) {
				l.dead = 7
				if c.path == resubmit {
					printed(l)
				}
			})
			answer := callBecause(t, server, c.method, c.path, who["basic"].header, c.body, c.reason)
			acts := ledger.written()
			if c.want.Action == "" {
				require.Empty(t, acts, answer)
				return
			}
			require.Len(t, acts, 1)
			got := acts[0]
			require.Equal(t, c.filter, string(got.Filter))
			require.True(t, strings.HasPrefix(got.Result, c.want.Result), got.Result)
			if strings.Contains(c.path, known) {
				require.NotNil(t, got.JobID)
			}
			c.want.Actor, c.want.ID, c.want.At, c.want.Filter, c.want.JobID, c.want.Result = "admin", got.ID, got.At, got.Filter, got.JobID, got.Result
			require.Equal(t, c.want, got)
		})
	}
}

// kept is a ledger, where a variable has that name.
type kept = ledger

// callBecause is call with a reason.
func callBecause(t *testing.T, server *httptest.Server, method, path, authorization, body, reason string) string {
	t.Helper()
	headers := []string{"Authorization: " + authorization, "Content-Type: application/json"}
	if reason != "" {
		headers = append(headers, "X-Holdfast-Reason: "+reason)
	}
	return send(server.Config.Handler, method, path, body, headers...).Body.String()
}

func TestAnActIsDoneAlthoughItCannotBeWrittenDown(t *testing.T) {
	ledger := newLedger()
	jobIn("queued")(ledger)
	ledger.actErr = job.ErrUnavailable
	log := &output{}
	server, _ := guardedBy(t, guard.Config{Access: accessFor(false)}, ledger, log)
	require.Equal(t, 200, call(t, server, "POST", known+"/cancel", who["basic"].header, "").status)
	require.Contains(t, log.String(), "act not written to the audit log")
	require.Contains(t, log.String(), `"action":"job.cancel"`)
}

func TestAFloodOfRefusalsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &diary{}
		recorder := audit.NewRecorder(log, nil, "")
		refuse := func(actor string) {
			recorder.Write(t.Context(), job.Act{Actor: actor, Action: "job.requeue", Result: "refused: it needs the scope operate"})
		}
		for range 1000 {
			refuse("token a")
		}
		refuse("token b")
		recorder.Write(t.Context(), job.Act{Actor: "token a", Action: "job.requeue", Result: job.ActDone})
		require.Len(t, log.written(), 22, "20 of the flood, that of another caller, and what was done")
		time.Sleep(time.Minute)
		synctest.Wait()
		acts := log.written()
		require.Len(t, acts, 23)
		last := acts[22]
		require.Equal(t, int64(980), *last.Count)
		require.Equal(t, "token a", last.Actor)
		require.Equal(t, "refused: it needs the scope operate (the last of 980 within a minute that are not in the log)", last.Result)
		refuse("token a")
		require.Len(t, log.written(), 24, "the next minute")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, log.written(), 24)
	})
}

func TestTheAuditLogIsReadPageByPage(t *testing.T) {
	server, ledger := audited(t, accessFor(false))
	for i := range 5 {
		require.NoError(t, ledger.RecordAct(t.Context(), job.Act{Actor: "admin", Action: "job.cancel", Filter: []byte(`{"name":"A"}`), Result: fmt.Sprint(i)}))
	}
	var seen []string
	path := "/debug/audit?actor=admin&action=job.cancel&limit=2"
	for path != "" {
		answer := call(t, server, "GET", path, who["token observe"].header, "")
		require.Equal(t, 200, answer.status, answer.body)
		var page v1.ActList
		require.NoError(t, json.Unmarshal([]byte(answer.body), &page))
		for _, act := range page.Acts {
			seen = append(seen, act.Result)
			require.Equal(t, map[string]string{"name": "A"}, act.Filter)
		}
		require.Equal(t, "admin", ledger.actFilter.Actor)
		require.Equal(t, "job.cancel", ledger.actFilter.Action)
		path, _, _ = strings.Cut(strings.TrimPrefix(answer.header.Get("Link"), "<"), ">")
	}
	require.Equal(t, []string{"4", "3", "2", "1", "0"}, seen)
}

func TestAnActionThatNeverWasIsRefused(t *testing.T) {
	server, ledger := audited(t, accessFor(false))
	ask := func(action string) reply {
		return call(t, server, "GET", "/debug/audit?action="+action, who["token observe"].header, "")
	}
	require.Equal(t, 200, ask("job.cancel").status, "nobody has done it yet")
	refused := ask("nosuch")
	require.Equal(t, 422, refused.status)
	require.Contains(t, refused.body, "there is no such action; there are dead-letter.requeue, job.cancel, ")
	require.NoError(t, ledger.RecordAct(t.Context(), job.Act{Actor: "admin", Action: "of.an.earlier.version", Result: job.ActDone}))
	require.Equal(t, 200, ask("of.an.earlier.version").status)
}

func TestATenantSeesItsOwnActs(t *testing.T) {
	server, ledger := audited(t, accessFor(false))
	require.Equal(t, 200, call(t, server, "GET", "/debug/audit", who["token observe of acme"].header, "").status)
	require.Equal(t, "acme", ledger.actFilter.Tenant)
	require.Equal(t, 404, call(t, server, "GET", "/debug/audit?tenant=zeta", who["token observe of acme"].header, "").status)
	require.Equal(t, 200, call(t, server, "GET", "/debug/audit?tenant=zeta&jobId="+strings.TrimPrefix(known, "/jobs/"), who["token observe"].header, "").status)
	require.Equal(t, "zeta", ledger.actFilter.Tenant)
	require.Equal(t, strings.TrimPrefix(known, "/jobs/"), ledger.actFilter.Job.String())
}

func TestALinkIsMadeForObservers(t *testing.T) {
	server, ledger := audited(t, accessFor(false))
	answer := call(t, server, "POST", "/login-links", who["token observe"].header, "")
	require.Equal(t, 200, answer.status)
	require.Regexp(t, `^{"path":"/ui/link\?code=[A-Za-z0-9_-]{43}","expiresInSeconds":60}\n$`, answer.body)
	require.Equal(t, "session.link", ledger.written()[0].Action)
	require.NotContains(t, string(ledger.written()[0].Filter), "code")
	open, _ := audited(t, nil)
	require.Equal(t, `{"path":"/ui/"}`+"\n", call(t, open, "POST", "/login-links", "", "").body)
}
