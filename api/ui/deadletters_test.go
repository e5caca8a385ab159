package ui_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestDeadLettersAreShownByTheirErrors(t *testing.T) {
	p := newPages(map[string]any{"GET /dead-letter/groups": v1.DeadLetterGroups{More: true, Groups: []v1.DeadLetterGroup{
		{
			JobType: "SEND_EMAIL", ErrorCode: "smtp_451", Fingerprint: "3a7bd3e2360a3d29", Message: `order #: <img onerror="x"> is busy`, Count: 10000, More: true,
			FirstDeadAt: noon.Add(-3 * time.Hour), LastDeadAt: noon.Add(-time.Minute), Versions: []string{"v1.0.0", "v1.1.0"},
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
