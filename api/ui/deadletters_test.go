package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestManyGroupsOfDeadLettersStayLight(t *testing.T) {
	groups := make([]v1.DeadLetterGroup, 1000)
	for i := range groups {
		groups[i] = v1.DeadLetterGroup{JobType: "SEND_EMAIL", Fingerprint: fmt.Sprintf("%016x", i), Message: "it broke", Count: 1, FirstDeadAt: noon, LastDeadAt: noon}
	}
	p := newPages(map[string]any{"GET /dead-letter/groups": v1.DeadLetterGroups{Groups: groups}})
	first := p.get("/ui/dead-letters?jobType=SEND_EMAIL").Body.String()
	require.Equal(t, 100, strings.Count(first, "<tr id="))
	require.Contains(t, first, `900 more groups, whose latest deaths are earlier. <a href="/ui/dead-letters?all=true&amp;jobType=SEND_EMAIL">Show all</a>`)
	all := p.get("/ui/dead-letters?all=true&jobType=SEND_EMAIL").Body.String()
	require.Equal(t, 1000, strings.Count(all, "<tr id="))
	require.NotContains(t, all, "more groups")
}

func TestDeadLettersAreShownByTheirErrors(t *testing.T) {
	p := newPages(map[string]any{"GET /dead-letter/groups": v1.DeadLetterGroups{More: true, Groups: []v1.DeadLetterGroup{
		{
			JobType: "SEND_EMAIL", ErrorCode: "smtp_451", Fingerprint: "3a7bd3e2360a3d29", Message: `order #: <img onerror="x"> is busy`, Count: 10000, More: true,
			FirstDeadAt: noon.Add(-3 * time.Hour), LastDeadAt: noon.Add(-time.Minute), Versions: []string{"v1.0.0", "v1.1.0"},
			Recent: append(make([]int64, 21), 400, 0, 200),
		},
		{JobType: "REPORT", Count: 1, FirstDeadAt: noon, LastDeadAt: noon},
	}}})
	w := p.get("/ui/dead-letters?tenant=acme")
	requireGolden(t, "dead-letters", w)
	require.NotContains(t, w.Body.String(), "<img")
	require.Contains(t, w.Body.String(), "/ui/operations/new?action=requeue&amp;errorCode=smtp_451&amp;fingerprint=3a7bd3e2360a3d29&amp;jobType=SEND_EMAIL&amp;state=dead&amp;tenant=acme")
	require.Contains(t, w.Body.String(), "Requeue 10,000&#43; jobs…")
	empty := newPages(map[string]any{"GET /dead-letter/groups": v1.DeadLetterGroups{}}).get("/ui/dead-letters")
	require.Contains(t, empty.Body.String(), "No job is dead.")
}
