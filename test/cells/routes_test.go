package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// asking returns a function that calls the server and expects a status.
func asking(t *testing.T, address string) func(want int, method, path, body string, headers ...string) answer {
	t.Helper()
	return func(want int, method, path, body string, headers ...string) answer {
		t.Helper()
		got, err := call(t.Context(), method, "http://"+address+path, body, headers...)
		require.NoError(t, err)
		require.Equal(t, want, got.status, "%s %s: %s", method, path, got.body)
		return got
	}
}

func TestAProxyFindsTheCellOfEveryID(t *testing.T) {
	cells := start(t)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			ask := asking(t, behind(t, name, addresses(cells)))
			for _, c := range cells {
				direct := asking(t, c.Address)
				held := direct(202, "POST", "/jobs", strings.Replace(echo, "{", `{"hold":true,`, 1)).id(t)
				require.Equal(t, job.CellOf(c.number), held.Cell())
				ask(200, "GET", "/jobs/"+held.String(), "")
				ask(200, "GET", "/jobs/"+strings.ToUpper(held.String())+"?wait=1ms", "")
				ask(200, "GET", "/debug/jobs/"+held.String(), "")
				again := ask(202, "POST", "/debug/jobs/"+held.String()+"/resubmit", "").id(t)
				require.Equal(t, job.CellOf(c.number), again.Cell())
				ask(200, "POST", "/jobs/"+held.String()+"/cancel", "")

				flow := direct(202, "POST", "/workflows", `{"name":"w","jobs":[`+echo+`]}`).id(t)
				require.Equal(t, job.CellOf(c.number), flow.Cell())
				ask(200, "GET", "/workflows/"+flow.String(), "")
				var started struct{ Operation struct{ OperationID job.ID } }
				got := direct(202, "POST", "/debug/operations", `{"action":"cancel","filter":{"state":["held"]},"reason":"test"}`)
				require.NoError(t, json.Unmarshal(got.body, &started))
				require.Equal(t, job.CellOf(c.number), started.Operation.OperationID.Cell())
				ask(200, "GET", "/debug/operations/"+started.Operation.OperationID.String(), "")
			}
			other := job.CellOf(7).Stamp(job.ID(uuid.Must(uuid.NewV7())))
			got := ask(404, "GET", "/jobs/"+other.String(), "")
			require.Contains(t, string(got.body), "no cell has made this id")
			got = ask(421, "GET", "/jobs", "")
			require.Equal(t, "application/problem+json", got.header.Get("Content-Type"))
			ask(421, "GET", "/metrics", "")
			ask(200, "GET", "/metrics", "", "X-Holdfast-Tenant", "acme")
		})
	}
}

func TestAnIDOfBeforeIsSoughtInTheCellThatHasIt(t *testing.T) {
	cells := start(t)
	conn, err := pgx.Connect(t.Context(), cells[0].url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	id := asking(t, cells[0].Address)(202, "POST", "/jobs", strings.Replace(echo, "{", `{"hold":true,`, 1)).id(t)
	former := job.ID(uuid.Must(uuid.NewV7())).String()
	_, err = conn.Exec(t.Context(), `with copied as (select * from jobs where job_id = $1), made as (
			insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state, max_attempts, timeout, state, run_at)
			select $2, tenant, job_type, priority, request_hash, payload, tags, trace_parent, trace_state, max_attempts, timeout, state, run_at from copied)
		insert into timers (job_id, run_at, state, job_type) select $2, 'infinity', 'created', job_type from copied`, id.String(), former)
	require.NoError(t, err)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			asking(t, behind(t, name, addresses(cells)))(200, "GET", "/jobs/"+former, "")
		})
	}
}

func TestSubmissionsOfATenantOrAKeyReachOneCell(t *testing.T) {
	cells := start(t)
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			ask := asking(t, behind(t, name, addresses(cells)))
			reached := map[job.Cell]int{}
			for i := range 64 {
				key := fmt.Sprintf("%s,key %d", name, i) // with a comma, by which headers are split
				first := ask(202, "POST", "/jobs", echo, "Idempotency-Key", key).id(t)
				quoted := ask(202, "POST", "/jobs", echo, "Idempotency-Key", `"`+key+`"`).id(t)
				require.Equal(t, first, quoted)
				reached[first.Cell()]++
				reached[ask(202, "POST", "/jobs", echo).id(t).Cell()] += 1000
				acme := ask(202, "POST", "/jobs", echo, "X-Holdfast-Tenant", "acme", "Idempotency-Key", key+" of acme").id(t)
				require.Equal(t, job.CellOf(1), acme.Cell())
			}
			for _, c := range cells {
				n := reached[job.CellOf(c.number)]
				require.Greater(t, n/1000, 8, "some without a key")
				require.Greater(t, n%1000, 8, "some with one")
			}
			got := ask(422, "POST", "/jobs", strings.Replace(echo, "{", `{"idempotencyKey":"k",`, 1))
			require.Contains(t, string(got.body), "must be in the header Idempotency-Key")
			ask(202, "POST", "/jobs/batch", "["+echo+","+echo+"]")
			ask(422, "POST", "/jobs/batch", "["+strings.Replace(echo, "{", `{"idempotencyKey":"k",`, 1)+"]")
			flow := `{"name":"w","jobs":[` + echo + `]}`
			require.Equal(t, ask(202, "POST", "/workflows", flow, "Idempotency-Key", name).id(t), ask(202, "POST", "/workflows", flow, "Idempotency-Key", name).id(t))
		})
	}
}

// Schedules and callbacks make jobs without any client.
func TestJobsThatACellMakesByItselfNameIt(t *testing.T) {
	told := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case told <- struct{}{}:
		default:
		}
	}))
	defer receiver.Close()
	cells := start(t, "plugins.1.name=builtin", "plugins.1.path="+filepath.Join(bin, "handlers"),
		"plugins.1.env.WEBHOOK_ALLOW_PRIVATE=true", "plugins.1.env.WEBHOOK_UNSIGNED=true")
	ask := asking(t, cells[1].Address)
	ask(200, "PUT", "/schedules/often", `{"every":"1s","job":`+echo+`}`)
	ask(202, "POST", "/jobs", strings.Replace(echo, "{", fmt.Sprintf(`{"callbackUrl":%q,`, receiver.URL), 1))
	select {
	case <-told:
	case <-time.After(rigtest.Patience):
		require.Fail(t, "no callback")
	}
	require.Eventually(t, func() bool { return len(cells[1].jobs(t)) >= 3 }, rigtest.Patience, glance, "one of the schedule, at least")
	for _, id := range cells[1].jobs(t) {
		require.Equal(t, job.CellOf(1), id.Cell())
	}
}
