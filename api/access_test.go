package api_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// columns are the callers of the table of all routes.
var columns = []string{
	"none", "submit", "read", "observe", "operate", "payloads", "observe, payloads", "observe, operate", "observe of acme",
}

// replaceable passes calls on to a ledger that the test replaces in between.
type replaceable struct{ *ledger }

// renewing is a server, and a function that gives it a new ledger. To build a server takes as
// long as hundreds of calls.
func renewing(t *testing.T, access *guard.Access) (server *httptest.Server, renew func(given ...func(*ledger))) {
	t.Helper()
	current := &replaceable{}
	renew = func(given ...func(*ledger)) {
		current.ledger = newLedger()
		jobIn("queued")(current.ledger)
		for _, more := range given {
			more(current.ledger)
		}
	}
	renew()
	server, _ = guardedBy(t, guard.Config{Access: access}, current, &output{})
	return server, renew
}

// TestWhoMayCallWhat calls every route with every scope. Read the diff of its golden: a
// route that changes something must not open to observe.
func TestWhoMayCallWhat(t *testing.T) {
	table := &strings.Builder{}
	fmt.Fprintf(table, "%-38s", "")
	for _, column := range columns {
		fmt.Fprintf(table, " | %s", column)
	}
	server, renew := renewing(t, accessFor(false))
	for _, route := range slices.Sorted(maps.Keys(operations(t, server))) {
		fmt.Fprintf(table, "\n%-38s", route)
		for _, column := range columns {
			renew()
			name := "token " + column
			if column == "none" {
				name = column
			}
			caller, known := who[name]
			require.True(t, known, name)
			answer := callRoute(t, server, route, caller.header)
			may := "yes"
			if answer.status == 401 || answer.status == 403 {
				may = fmt.Sprint(answer.status)
			}
			fmt.Fprintf(table, " | %*s", len(column), may)
			if column == "observe" && may == "yes" && route != "POST /login-links" {
				require.True(t, strings.HasPrefix(route, "GET "), "%s may change something, and observe opens it", route)
			}
		}
	}
	requireGolden(t, "access", table.String()+"\n")
}

// containing puts a text into everything that clients and handlers fill.
func containing(text string) func(*ledger) {
	secret, _ := json.Marshal(text)
	return func(l *ledger) {
		busy(l)
		for id, view := range l.jobs {
			view.Progress, view.Result = secret, secret
			l.jobs[id] = view
			detail := l.details[id]
			detail.View, detail.Payload, detail.Checkpoint = view, secret, secret
			detail.Callback = "https://example.com/" + text
			l.details[id] = detail
			for i := range l.logs[id] {
				for j := range l.logs[id][i].Lines {
					l.logs[id][i].Lines[j].Message, l.logs[id][i].Lines[j].Attributes = text, secret
				}
			}
		}
	}
}

func TestNoAnswerShowsPayloadsWithoutTheirScope(t *testing.T) {
	const text = "what a client has sent"
	everything := []guard.Scope{guard.Submit, guard.Read, guard.Observe, guard.Operate}
	access := accessFor(true)
	access.Tokens = append(access.Tokens, guard.Token{Name: "everything else", Digest: guard.DigestOf("else"), Scopes: everything})
	states := []job.State{job.Created, job.Queued, job.Running, job.Dead}
	shown := map[string]bool{}
	server, renew := renewing(t, access)
	for route := range operations(t, server) {
		for _, state := range states {
			given := func(l *ledger) {
				containing(text)(l)
				for id, view := range l.jobs {
					view.State = state
					l.jobs[id] = view
				}
			}
			renew(given)
			for _, header := range []string{"Bearer else", who["token observe"].header, who["token observe, operate"].header} {
				require.NotContains(t, callRoute(t, server, route, header).body, text, "%s by %s", route, header)
			}
			renew(given)
			if answer := callRoute(t, server, route, who["basic"].header); strings.Contains(answer.body, text) {
				shown[route] = true
				require.NotContains(t, answer.body, "payloadsWithheld")
			}
		}
	}
	for _, route := range []string{
		"GET /jobs", "GET /jobs/{id}", "GET /debug/jobs/{id}", "GET /debug/jobs/{id}/logs",
		"POST /jobs/{id}/cancel", "POST /jobs/{id}/hold", "POST /jobs/{id}/release", "POST /jobs/{id}/requeue",
	} {
		require.True(t, shown[route], "%s shows them to others, or this test tests nothing", route)
	}
	renew(containing(text))
	for _, route := range []string{"GET /jobs/{id}", "GET /debug/jobs/{id}"} {
		require.Contains(t, callRoute(t, server, route, "Bearer else").body, `"payloadsWithheld":true`, route)
	}
	require.Contains(t, callRoute(t, server, "GET /debug/jobs/{id}", "Bearer else").body, `"callbackUrl":"https://example.com"`)
}

// TestEveryTextOfAClientIsMarked finds the members of api/v1 that can hold any JSON.
func TestEveryTextOfAClientIsMarked(t *testing.T) {
	others := map[string]string{
		"Submission.Payload":   "only in requests",
		"Delivery.Event":       "the payload of a job, no answer",
		"Worker.Plugins":       "what orchestrators say about themselves",
		"PluginOutcome.Swap":   "what orchestrators say about plugins",
		"PluginEvent.Details":  "what orchestrators say about plugins",
		"LogLine.Attributes":   "its route needs payloads",
		"Resubmission.Payload": "only in requests",
	}
	files, err := filepath.Glob("v1/*.go")
	require.NoError(t, err)
	marked := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := declared.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				var tag reflect.StructTag
				if field.Tag != nil {
					tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
				}
				if tag.Get("payloads") == "withhold" {
					marked++
					continue
				}
				for _, name := range field.Names {
					if holdsAnything(field.Type) {
						require.Contains(t, others, declared.Name.Name+"."+name.Name,
							`withhold it without the scope payloads: payloads:"withhold"`)
					}
				}
			}
			return true
		})
	}
	require.GreaterOrEqual(t, marked, 4)
}

// holdsAnything reports whether an expression for a type mentions any or json.RawMessage.
func holdsAnything(expression ast.Expr) bool {
	found := false
	ast.Inspect(expression, func(node ast.Node) bool {
		if name, ok := node.(*ast.Ident); ok && (name.Name == "RawMessage" || name.Name == "any") {
			found = true
		}
		return true
	})
	return found
}
