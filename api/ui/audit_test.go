package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func someActs() map[string]any {
	id := job.ID{1, 2, 3}
	return map[string]any{"GET /debug/audit": v1.ActList{NextCursor: "next", Acts: []v1.Act{
		{ActID: "4", At: noon.Add(-time.Minute), Actor: "admin", Action: "job.requeue", Tenant: "acme", JobID: &id, Count: new(int64(1)), Reason: "the bank is back", Result: "done"},
		{ActID: "3", At: noon.Add(-time.Hour), Actor: "token ops", Action: "pause.set", Filter: map[string]string{"scope": "type", "name": "<img src=x onerror=alert(1)>"}, Result: "refused: it needs the scope operate"},
		{ActID: "2", At: noon.Add(-48 * time.Hour), Action: "operation.start", Filter: map[string]string{"id": "op-12345678"}, Count: new(int64(50000)), Result: "Conflict: it has ended"},
		{ActID: "1", At: noon.Add(-72 * time.Hour), Actor: "admin", Action: "tenant.erase", Result: "finished, except for 2 open jobs"},
	}}}
}

func TestTheAuditLogIsShown(t *testing.T) {
	p := newPages(someActs())
	_, live, found := strings.Cut(p.get("/ui/audit").Body.String(), `<div id="live-audit" data-live>`)
	require.True(t, found)
	live, _, _ = strings.Cut(live, "</main>")
	requireGoldenText(t, "audit", live)
	w := p.get("/ui/audit?actor=admin&action=job.requeue&tenant=acme&jobId=a&from=b&before=c&cursor=d")
	require.Contains(t, w.Body.String(), `href="/ui/audit?action=job.requeue&amp;actor=admin&amp;before=c&amp;cursor=next&amp;from=b&amp;jobId=a&amp;tenant=acme">Older`)
	require.Contains(t, w.Body.String(), `href="/ui/audit?action=job.requeue&amp;before=c&amp;from=b&amp;jobId=a&amp;tenant=acme">By: admin`)
	require.Contains(t, w.Body.String(), `>Newest</a>`)
	empty := newPages(map[string]any{"GET /debug/audit": v1.ActList{Acts: []v1.Act{}}})
	require.Contains(t, empty.get("/ui/audit?actor=nobody").Body.String(), "Nothing matches these filters.")
	require.Contains(t, empty.get("/ui/audit").Body.String(), "Nobody has done anything yet.")
}

func TestAFilterThatIsWrongIsExplained(t *testing.T) {
	wrong := v1.Invalid(v1.Mistake{Location: "query.from", Message: "must be an RFC 3339 time, such as 2030-01-31T12:00:00Z"})
	w := newPages(map[string]any{"GET /debug/audit": wrong}).get("/ui/audit?from=yesterday")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), "must be an RFC 3339 time")
	require.Contains(t, w.Body.String(), `value="yesterday"`)
}
