package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/api/guard"
)

// scopes maps every operation to its scope. allTenants marks operations that callers
// bound to a tenant may not use.
var scopes = map[string]struct {
	scope      guard.Scope
	allTenants bool
	// payloads marks operations that need the scope payloads as well.
	payloads bool
}{
	"POST /jobs":                          {scope: guard.Submit},
	"POST /jobs/batch":                    {scope: guard.Submit},
	"GET /jobs":                           {scope: guard.Read},
	"GET /jobs/{id}":                      {scope: guard.Read},
	"GET /jobs/{id}/tree":                 {scope: guard.Read},
	"POST /jobs/{id}/cancel":              {scope: guard.Submit},
	"POST /jobs/{id}/hold":                {scope: guard.Submit},
	"POST /jobs/{id}/release":             {scope: guard.Submit},
	"POST /jobs/{id}/requeue":             {scope: guard.Operate},
	"PATCH /jobs":                         {scope: guard.Operate},
	"PATCH /jobs/{id}":                    {scope: guard.Submit},
	"GET /schedules":                      {scope: guard.Read},
	"GET /schedules/{schedule}":           {scope: guard.Read},
	"PUT /schedules/{schedule}":           {scope: guard.Submit},
	"DELETE /schedules/{schedule}":        {scope: guard.Submit},
	"POST /schedules/{schedule}/pause":    {scope: guard.Submit},
	"POST /schedules/{schedule}/resume":   {scope: guard.Submit},
	"POST /schedules/{schedule}/run":      {scope: guard.Submit},
	"POST /schedules/{schedule}/backfill": {scope: guard.Submit},
	"GET /schedules/{schedule}/next":      {scope: guard.Read},
	"POST /schedules/preview":             {scope: guard.Read},
	"GET /dead-letter":                    {scope: guard.Observe},
	"GET /dead-letter/groups":             {scope: guard.Observe},
	"GET /debug/jobs":                     {scope: guard.Observe},
	"GET /debug/jobs/count":               {scope: guard.Observe},
	"GET /debug/jobs/lookup":              {scope: guard.Observe},
	"POST /dead-letter/retry":             {scope: guard.Operate},
	"GET /events":                         {scope: guard.Read},
	"GET /job-types":                      {scope: guard.Read},
	"GET /job-types/{type}":               {scope: guard.Read},
	"GET /job-types/{type}/schema":        {scope: guard.Read},
	"POST /jobs/{id}/erase":               {scope: guard.Operate},
	"POST /erasures":                      {scope: guard.Operate},
	"GET /erasures":                       {scope: guard.Observe},
	"GET /erasures/{id}":                  {scope: guard.Observe},
	"GET /debug/operations":               {scope: guard.Observe},
	"GET /debug/operations/{id}":          {scope: guard.Observe},
	"POST /debug/operations":              {scope: guard.Operate},
	"POST /debug/operations/{id}/stop":    {scope: guard.Operate},
	"GET /retention/plan":                 {scope: guard.Observe, allTenants: true},
	"GET /debug/workers":                  {scope: guard.Observe, allTenants: true},
	"GET /debug/workers/summary":          {scope: guard.Observe, allTenants: true},
	"GET /debug/plugins":                  {scope: guard.Observe, allTenants: true},
	"GET /debug/plugins/events":           {scope: guard.Observe, allTenants: true},
	"GET /debug/plugins/everywhere":       {scope: guard.Observe, allTenants: true},
	"GET /debug/plugins/commands/{id}":    {scope: guard.Observe, allTenants: true},
	"POST /debug/plugins/{name}/commands": {scope: guard.Operate, allTenants: true},
	"POST /debug/plugins/{name}/swap":     {scope: guard.Operate, allTenants: true},
	"POST /debug/plugins/{name}/restart":  {scope: guard.Operate, allTenants: true},
	"POST /debug/plugins/{name}/disable":  {scope: guard.Operate, allTenants: true},
	"POST /debug/plugins/{name}/enable":   {scope: guard.Operate, allTenants: true},
	"GET /debug/limits":                   {scope: guard.Observe, allTenants: true},
	"GET /debug/limits/{scope}/{name}":    {scope: guard.Observe, allTenants: true},
	"PUT /debug/limits/{scope}/{name}":    {scope: guard.Operate, allTenants: true},
	"DELETE /debug/limits/{scope}/{name}": {scope: guard.Operate, allTenants: true},
	"GET /debug/pauses":                   {scope: guard.Observe, allTenants: true},
	"PUT /debug/pauses/{scope}/{name}":    {scope: guard.Operate, allTenants: true},
	"PUT /debug/pauses/all":               {scope: guard.Operate, allTenants: true},
	"DELETE /debug/pauses/{scope}/{name}": {scope: guard.Operate, allTenants: true},
	"DELETE /debug/pauses/all":            {scope: guard.Operate, allTenants: true},
	"POST /debug/workers/{worker}/drain":  {scope: guard.Operate, allTenants: true},
	"POST /debug/workers/{worker}/resume": {scope: guard.Operate, allTenants: true},
	"GET /debug/jobs/{id}":                {scope: guard.Observe},
	"POST /debug/jobs/{id}/resubmit":      {scope: guard.Operate},
	"GET /debug/jobs/{id}/logs":           {scope: guard.Observe, payloads: true},
	"GET /debug/config":                   {scope: guard.Observe, allTenants: true},
	"GET /debug/replica":                  {scope: guard.Observe, allTenants: true},
	"GET /debug/queues":                   {scope: guard.Observe, allTenants: true},
	"GET /debug/doctor":                   {scope: guard.Observe, allTenants: true},
	"POST /workflows":                     {scope: guard.Submit},
	"GET /workflows":                      {scope: guard.Read},
	"GET /workflows/count":                {scope: guard.Read},
	"GET /workflows/{id}":                 {scope: guard.Read},
	"POST /workflows/{id}/cancel":         {scope: guard.Submit},
	"POST /workflows/{id}/hold":           {scope: guard.Submit},
	"POST /workflows/{id}/release":        {scope: guard.Submit},
	"POST /workflows/{id}/requeue":        {scope: guard.Operate},
	"GET /metrics":                        {scope: guard.Observe, allTenants: true},
	"GET /debug/series":                   {scope: guard.Observe, allTenants: true},
	"GET /debug/audit":                    {scope: guard.Observe},
	"POST /login-links":                   {scope: guard.Observe},
}

// who are the callers of these tests, with their scopes.
var who = map[string]struct {
	header string
	scopes []guard.Scope
	bound  bool
}{
	"basic":                   {header: "Basic YWRtaW46Y2FuYXJ5LXBhc3N3b3Jk", scopes: guard.Scopes()},
	"token submit":            {header: "Bearer canary-submit", scopes: []guard.Scope{guard.Submit}},
	"token read":              {header: "Bearer canary-read", scopes: []guard.Scope{guard.Read}},
	"token operate":           {header: "Bearer canary-operate", scopes: []guard.Scope{guard.Operate}},
	"token observe":           {header: "Bearer canary-observe", scopes: []guard.Scope{guard.Observe}},
	"token payloads":          {header: "Bearer canary-payloads", scopes: []guard.Scope{guard.Payloads}},
	"token observe, operate":  {header: "Bearer canary-both", scopes: []guard.Scope{guard.Observe, guard.Operate}},
	"token observe, payloads": {header: "Bearer canary-sees", scopes: []guard.Scope{guard.Observe, guard.Payloads}},
	"token observe of acme":   {header: "Bearer canary-acme-observe", scopes: []guard.Scope{guard.Observe}, bound: true},
	"token of acme":           {header: "Bearer canary-acme", scopes: guard.Scopes(), bound: true},
	"none":                    {},
	"wrong token":             {header: "Bearer canary-wrong"},
	"wrong password":          {header: "Basic YWRtaW46Y2FuYXJ5LXdyb25n"},
}

func accessFor(closed bool) *guard.Access {
	access := &guard.Access{User: "admin", Password: guard.DigestOf("canary-password"), Closed: closed}
	for name, caller := range who {
		token, isToken := strings.CutPrefix(caller.header, "Bearer ")
		if !isToken || name == "wrong token" {
			continue
		}
		holder := guard.Token{Name: name, Digest: guard.DigestOf(token), Scopes: caller.scopes}
		if caller.bound {
			holder.Tenant = "acme"
		}
		access.Tokens = append(access.Tokens, holder)
	}
	return access
}

// output is a log that a test can read while a server writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// guarded is the API with a guard, on a real server that logs everything.
func guarded(t *testing.T, config guard.Config, given ...func(*ledger)) (*httptest.Server, *output) {
	t.Helper()
	ledger := newLedger()
	jobIn("queued")(ledger)
	for _, more := range given {
		more(ledger)
	}
	return guardedBy(t, config, ledger, &output{})
}

func guardedBy(t *testing.T, config guard.Config, ledger ledgers, log *output) (*httptest.Server, *output) {
	t.Helper()
	config.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	server := httptest.NewServer(api.New(api.Config{
		Jobs: ledger, Operations: ledger, Rules: ledger, Retention: ledger, Bulk: ledger, Schedules: ledger, Workflows: ledger, Logins: ledger, Audit: ledger, Guard: guard.New(config), Log: config.Log, Version: "test",
		MaxBodyBytes: 4096, MaxBatchBytes: 1 << 20, RequestTimeout: time.Minute,
	}))
	t.Cleanup(server.Close)
	return server, log
}

// reply is an answer that has been read.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request and returns the answer.
func call(t *testing.T, server *httptest.Server, method, path, authorization, text string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(text))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer, err := server.Client().Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return reply{status: answer.StatusCode, header: answer.Header, body: string(body)}
}

// inhabited replaces the parameters of a path.
func inhabited(path string) string {
	return strings.NewReplacer("{id}", strings.TrimPrefix(known, "/jobs/"), "{type}", "SLEEP_JOB").Replace(path)
}

// callRoute calls a route such as "GET /jobs/{id}".
func callRoute(t *testing.T, server *httptest.Server, route, authorization string) reply {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	return call(t, server, method, inhabited(path), authorization, "{}")
}

// operation is the part of a described operation that these tests read.
type operation struct {
	OperationID string
	Scope       *guard.Scope          `json:"x-scope"`
	Also        guard.Scope           `json:"x-also-scope"`
	Security    []map[string][]string `json:"security"`
	Responses   map[string]any
}

// operations are those of the OpenAPI document, as "METHOD /path".
func operations(t *testing.T, server *httptest.Server) map[string]operation {
	t.Helper()
	answer := call(t, server, "GET", "/openapi.json", who["basic"].header, "")
	require.Equal(t, 200, answer.status)
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ SecuritySchemes map[string]any }
	}
	require.NoError(t, json.Unmarshal([]byte(answer.body), &document))
	require.Len(t, document.Components.SecuritySchemes, 2)
	found := map[string]operation{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			found[strings.ToUpper(method)+" "+path] = o
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestEveryOperationSaysItsScope(t *testing.T) {
	for _, closed := range []bool{false, true} {
		server, _ := guarded(t, guard.Config{Access: accessFor(closed)})
		for route, o := range operations(t, server) {
			want, known := scopes[route]
			require.True(t, known, "%s: write its scope into the table of this test", route)
			require.NotNil(t, o.Scope, "%s has no scope", route)
			require.Equal(t, want.scope, *o.Scope, route)
			require.Equal(t, want.payloads, o.Also == guard.Payloads, route)
			for _, status := range []string{"401", "403", "429"} {
				require.Contains(t, o.Responses, status, route)
			}
			schemes := []map[string][]string{{"basic": {}}, {"bearer": {}}}
			if !closed && (want.scope == guard.Submit || want.scope == guard.Read) {
				schemes = append(schemes, map[string][]string{}) // no credentials
			}
			require.Equal(t, schemes, o.Security, route)
		}
	}
}

func TestEveryRouteAsksForItsScope(t *testing.T) {
	for _, closed := range []bool{false, true} {
		server, _ := guarded(t, guard.Config{Access: accessFor(closed)})
		for route := range operations(t, server) {
			server, log := guarded(t, guard.Config{Access: accessFor(closed)})
			want := scopes[route]
			method, path, _ := strings.Cut(route, " ")
			path = inhabited(path)
			methods := []string{method}
			if method == "GET" {
				methods = append(methods, "HEAD")
			}
			for name, caller := range who {
				for _, method := range methods {
					t.Run(fmt.Sprintf("%s %s by %s, closed %t", method, path, name, closed), func(t *testing.T) {
						answer := call(t, server, method, path, caller.header, "{}")
						switch {
						case strings.HasPrefix(name, "wrong"), name == "none" && (closed || want.scope != guard.Submit && want.scope != guard.Read):
							require.Equal(t, 401, answer.status)
							require.Len(t, answer.header.Values("WWW-Authenticate"), 2)
							require.Equal(t, "application/problem+json", answer.header.Get("Content-Type"))
						case name != "none" && !may(caller.scopes, want.scope), caller.bound && want.allTenants,
							want.payloads && !may(caller.scopes, guard.Payloads):
							require.Equal(t, 403, answer.status)
							if method != "HEAD" {
								require.Contains(t, answer.body, "the credentials do not allow this: it ")
							}
							require.Equal(t, "application/problem+json", answer.header.Get("Content-Type"))
						default:
							require.NotContains(t, []int{401, 403, 429}, answer.status, answer.body)
						}
						require.NotContains(t, answer.body, "canary")
					})
				}
			}
			require.Contains(t, log.String(), `"client":"127.0.0.1"`)
			require.NotContains(t, log.String(), "canary")
		}
	}
}

// may reports whether a caller with a list of scopes has the wanted one. Lists without
// observe mean what they meant before there was observe.
func may(listed []guard.Scope, wanted guard.Scope) bool {
	old := !slices.Contains(listed, guard.Observe)
	switch wanted {
	case guard.Observe:
		return !old || slices.Contains(listed, guard.Operate)
	case guard.Payloads:
		return old || slices.Contains(listed, guard.Payloads)
	default:
		return slices.Contains(listed, wanted)
	}
}

func TestPathsThatAreNoOperationsAreGuardedToo(t *testing.T) {
	for _, c := range []struct {
		request      string
		open, closed int
	}{
		{request: "GET /healthz", open: 200, closed: 200},
		{request: "HEAD /healthz", open: 200, closed: 200},
		{request: "GET /readyz", open: 200, closed: 200},
		{request: "POST /healthz", open: 405, closed: 405},
		{request: "GET /openapi.json", open: 200, closed: 401},
		{request: "GET /openapi.yaml", open: 200, closed: 401},
		{request: "GET /docs", open: 200, closed: 401},
		{request: "GET /docs/swagger-ui.css", open: 200, closed: 401},
		{request: "GET /nothing", open: 404, closed: 401},
		{request: "PUT /jobs", open: 405, closed: 401},
		{request: "OPTIONS /jobs", open: 405, closed: 401},
		{request: "GET /debug/nothing", open: 401, closed: 401},
		{request: "PUT /debug/workers", open: 401, closed: 401},
		{request: "GET /%64ebug/workers", open: 401, closed: 401},
		{request: "DELETE /dead-letter", open: 401, closed: 401},
		{request: "GET /metrics/x", open: 401, closed: 401},
	} {
		method, path, _ := strings.Cut(c.request, " ")
		for want, closed := range map[*int]bool{&c.open: false, &c.closed: true} {
			server, _ := guarded(t, guard.Config{Access: accessFor(closed)})
			answer := call(t, server, method, path, "", "")
			require.Equal(t, *want, answer.status, "%s closed %t", c.request, closed)
			answer = call(t, server, method, path, who["wrong token"].header, "")
			require.Equal(t, 401, answer.status, c.request)
			answer = call(t, server, method, path, who["basic"].header, "")
			require.NotContains(t, []int{401, 403}, answer.status, c.request)
		}
	}
}

func TestSubmissionsAreLimitedForEachClient(t *testing.T) {
	server, _ := guarded(t, guard.Config{PerMinute: map[guard.Limit]int{guard.Jobs: 2}})
	for range 2 {
		answer := call(t, server, "POST", "/jobs", "", minimal)
		require.Equal(t, 202, answer.status)
		require.Equal(t, `"jobs";q=2;w=60`, answer.header.Get("RateLimit-Policy"))
	}
	answer := call(t, server, "POST", "/jobs", "", minimal)
	require.Equal(t, 429, answer.status)
	require.Equal(t, "application/problem+json", answer.header.Get("Content-Type"))
	require.NotEmpty(t, answer.header.Get("Retry-After"))
	require.Contains(t, answer.header.Get("RateLimit"), `"jobs";r=0;t=`)
	require.Equal(t, 200, call(t, server, "GET", known, "", "").status, "reading has a limit of its own")
}

func TestReadsAreLimitedForEachClient(t *testing.T) {
	server, _ := guarded(t, guard.Config{PerMinute: map[guard.Limit]int{guard.Reads: 3}})
	for _, path := range []string{"/jobs", known, "/job-types"} {
		require.Equal(t, 200, call(t, server, "GET", path, "", "").status, path)
	}
	answer := call(t, server, "GET", "/jobs", "", "")
	require.Equal(t, 429, answer.status)
	require.Equal(t, "application/problem+json", answer.header.Get("Content-Type"))
	require.NotEmpty(t, answer.header.Get("Retry-After"))
	require.Contains(t, answer.header.Get("RateLimit"), `"reads";r=0;t=`)
	require.Equal(t, 202, call(t, server, "POST", "/jobs", "", minimal).status, "submitting has a limit of its own")
	require.Equal(t, 200, call(t, server, "GET", "/healthz", "", "").status, "probes are not limited")
	require.Equal(t, 200, call(t, server, "GET", "/readyz", "", "").status, "probes are not limited")
}

func TestExcessiveHeadersAreRefused(t *testing.T) {
	server, _ := guarded(t, guard.Config{})
	for fields, want := range map[int]int{100: 200, 101: 431} {
		require.Equal(t, want, raw(t, server, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("X-A: b\r\n", fields)+"\r\n"))
	}
	for length, want := range map[int]int{8 << 10: 200, 8<<10 + 1: 414} {
		path := "/healthz?" + strings.Repeat("x", length-len("/healthz?"))
		require.Equal(t, want, raw(t, server, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
}

// raw sends a request byte for byte and returns the status.
func raw(t *testing.T, server *httptest.Server, request string) int {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = io.WriteString(connection, request)
	require.NoError(t, err)
	var version string
	var status int
	_, err = fmt.Fscan(connection, &version, &status)
	require.NoError(t, err)
	return status
}
