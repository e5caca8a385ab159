package ui

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// millions is set if the tests beside many jobs run at full size, and judge times as well.
var millions = os.Getenv("HOLDFAST_TEST_UI_SCALE") == "full"

// What a page may take at the server beside millions of jobs, in 19 of 20 cases, and how often
// each is read to know.
const (
	pageWithin = 300 * time.Millisecond
	rounds     = 20
)

// questions are all views of the UI, and what people ask them: paths by what they show.
func questions(t testing.TB, db *pgx.Conn) map[string]string {
	t.Helper()
	one := func(query string) (text string) {
		t.Helper()
		require.NoError(t, db.QueryRow(t.Context(), query).Scan(&text), query)
		return text
	}
	dead := one("select job_id::text from dead_letters order by job_id desc offset 40 limit 1")
	succeeded := one("select job_id::text from jobs where state = 'succeeded' limit 1")
	queued := one("select job_id::text from ready limit 1")
	fingerprint := one("select fingerprint from dead_letters where job_type = 'MAIL' limit 1")
	from := one(`select to_char(now() - interval '5 days', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`)
	before := one(`select to_char(now() - interval '5 days' + interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`)
	all := map[string]string{
		"overview": "/ui/", "overview, 1 h": "/ui/?minutes=60", "overview, 24 h": "/ui/?minutes=1440",
		"jobs": "/ui/jobs", "jobs, older": "/ui/jobs?createdBefore=" + from,
		"job, dead": "/ui/jobs/" + dead, "job, succeeded": "/ui/jobs/" + succeeded, "job, queued": "/ui/jobs/" + queued,
		"payload":          "/ui/jobs/" + succeeded + "/payload",
		"search for an id": "/ui/jobs?q=" + dead, "search for a key": "/ui/jobs?q=order-5", "search for nothing known": "/ui/jobs?q=nosuch",
		"dead letters": "/ui/dead-letters", "dead letters of a type": "/ui/dead-letters?jobType=MAIL", "dead letters of a tenant": "/ui/dead-letters?tenant=tenant-101",
		"types": "/ui/types", "type": "/ui/types/MAIL", "new job": "/ui/types/WORK/new", "schedules": "/ui/schedules", "schedule": "/ui/schedules/default/nightly-7",
		"workers": "/ui/workers", "worker": "/ui/workers/" + url.PathEscape(one("select worker_id from workers order by started_at desc limit 1")), "plugins": "/ui/plugins", "plugin": "/ui/plugins/shop",
		"workflows": "/ui/workflows", "workflows, unfinished": "/ui/workflows?state=stuck",
		"workflow":   "/ui/workflows/" + one("select workflow_id::text from workflows where finished_at is null limit 1"),
		"operations": "/ui/operations", "audit": "/ui/audit", "audit, by": "/ui/audit?actor=token:3", "audit, nobody": "/ui/audit?actor=nosuch",
		"audit, action": "/ui/audit?action=job.cancel", "audit, tenant": "/ui/audit?tenant=tenant-3", "audit, job": "/ui/audit?jobId=" + dead,
		"health": "/ui/health", "settings": "/ui/settings",
		"operation": "/ui/operations/" + one("select operation_id::text from operations limit 1"),
	}
	filters := map[string]url.Values{
		"dead of a type": {"state": {"dead"}, "jobType": {"MAIL"}}, "ended of a rare type": {"state": {"succeeded"}, "jobType": {"AUDIT"}},
		"queued of a type": {"state": {"queued"}, "jobType": {"MAIL"}}, "queued of a rare type": {"state": {"queued"}, "jobType": {"AUDIT"}},
		"running of a type": {"state": {"running"}, "jobType": {"WORK"}}, "unknown type": {"jobType": {"NOSUCH"}},
		"dead or canceled": {"state": {"dead", "canceled"}}, "queued of a tenant": {"state": {"queued"}, "tenant": {"tenant-101"}},
		"type": {"jobType": {"MAIL"}}, "rare type": {"jobType": {"AUDIT"}},
		"default tenant": {"tenant": {"default"}}, "tenant": {"tenant": {"tenant-101"}}, "unknown tenant": {"tenant": {"nosuch"}},
		"tag": {"tag": {"region:eu"}}, "rare tag": {"tag": {"customer:77"}}, "unknown tag": {"tag": {"nosuch"}},
		"worker": {"worker": {"worker-1"}}, "unknown worker": {"worker": {"nosuch"}},
		"code": {"errorCode": {"UPSTREAM"}}, "unknown code": {"errorCode": {"nosuch"}}, "dead with a code": {"state": {"dead"}, "errorCode": {"PAYMENT"}},
		"an hour": {"createdFrom": {from}, "createdBefore": {before}}, "dead of an hour": {"state": {"dead"}, "createdFrom": {from}, "createdBefore": {before}},
		"tag in an hour": {"tag": {"customer:77"}, "createdFrom": {from}, "createdBefore": {before}},
		"payload":        {"payload": {"customer77@"}}, "unknown payload": {"payload": {"nosuch"}}, "payload of the dead": {"state": {"dead"}, "payload": {"nosuch"}},
		"fingerprint": {"state": {"dead"}, "jobType": {"MAIL"}, "fingerprint": {fingerprint}}, "unknown parent": {"parentId": {dead}},
	}
	for _, state := range []string{"queued", "scheduled", "held", "retrying", "running", "succeeded", "dead", "canceled"} {
		filters[state] = url.Values{"state": {state}}
	}
	for name, filter := range filters {
		all["jobs: "+name] = "/ui/jobs?" + filter.Encode()
		if action := actionOn(filter["state"]); action != "" {
			filter.Set("action", action)
			all[action+": "+name] = "/ui/operations/new?" + filter.Encode()
		}
	}
	return all
}

// actionOn is what operators do to jobs of the states; empty for nothing.
func actionOn(states []string) string {
	switch {
	case slices.Equal(states, []string{"dead"}):
		return "requeue"
	case slices.Contains(states, "dead") || slices.Contains(states, "succeeded") || slices.Contains(states, "canceled"):
		return ""
	default:
		return "cancel"
	}
}

// ask reads a page as a browser does, and follows it to where a search leads. Unless pages are
// measured, it tries again what a busy machine could not read in time, as the page would.
func (in *session) ask(path string) (took time.Duration) {
	in.t.Helper()
	began := time.Now()
	status, header, text := in.send(http.MethodGet, path, nil, nil)
	took = time.Since(began)
	if status == http.StatusServiceUnavailable && !millions {
		require.Eventually(in.t, func() bool {
			status, header, text = in.send(http.MethodGet, path, nil, nil)
			return status != http.StatusServiceUnavailable
		}, patience, time.Second, path)
	}
	if status == http.StatusSeeOther && strings.Contains(path, "?q=") {
		return in.ask(header.Get("Location"))
	}
	if status != http.StatusOK {
		in.t.Errorf("%s answers %d after %s\n%.4000s", path, status, took, text)
	}
	return took
}

func TestEveryPageAnswersBesideManyJobs(t *testing.T) {
	s, db := amongMany(t)
	in, pages := s.operator(t), questions(t, db)
	names := make([]string, 0, len(pages))
	for name := range pages {
		names = append(names, name)
	}
	slices.Sort(names)
	took := make(map[string][]time.Duration, len(pages))
	times := 1
	if millions {
		times = rounds
	}
	for range times {
		for _, at := range rand.Perm(len(names)) {
			took[names[at]] = append(took[names[at]], in.ask(pages[names[at]]))
		}
	}
	report := &strings.Builder{}
	for _, name := range names {
		all := took[name]
		slices.Sort(all)
		ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		p95 := all[(len(all)*95+99)/100-1]
		fmt.Fprintf(report, "%-40s %7.1f %7.1f %7.1f\n", name, ms(all[len(all)/2]), ms(p95), ms(all[len(all)-1]))
		if millions && p95 > pageWithin {
			t.Errorf("%s takes %s: %s", name, p95, pages[name])
		}
	}
	t.Logf("ms at the server, %d times each:\n%-40s %7s %7s %7s\n%s", times, "", "p50", "p95", "max", report)
}
