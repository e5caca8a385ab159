package ui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// written is an act in the audit log.
type written struct{ Actor, Action, Result string }

// writtenDown are all acts, newest first, without the ends of operations.
func (s *scene) writtenDown(t testing.TB) []written {
	t.Helper()
	var list struct {
		Acts       []written
		NextCursor string
	}
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/audit?limit=1000", nil, http.StatusOK, &list))
	require.Empty(t, list.NextCursor)
	return slices.DeleteFunc(list.Acts, func(a written) bool { return a.Action == "operation.requeue" && a.Result != "started" })
}

func TestEveryActOnAPageIsWrittenDownOnce(t *testing.T) {
	t.Parallel()
	s, _ := full(t)
	operating := s.operator(t)
	_, forms := operating.crawl()
	for _, by := range []struct {
		actor string
		in    *session
	}{{"token observer", s.holder(t, observer)}, {"admin", operating}} {
		for _, f := range acts(forms) {
			if jobs := f.fields["job"]; len(jobs) > 1 {
				f.fields["job"] = jobs[:1]
			}
			before := len(s.writtenDown(t))
			status, _, text := by.in.send(http.MethodPost, f.action, f.fields, http.Header{"Origin": {s.origin}})
			after := s.writtenDown(t)
			what := fmt.Sprintf("%s by %s: %d", f.action, by.actor, status)
			if strings.Contains(text, `name="confirmed"`) { // It only asks.
				require.Len(t, after, before, what)
				continue
			}
			require.Len(t, after, before+1, what)
			require.Equal(t, by.actor, after[0].Actor, what)
			switch status {
			case http.StatusForbidden:
				require.Contains(t, after[0].Result, "refused: it needs the scope ", what)
			case http.StatusSeeOther:
				require.NotContains(t, after[0].Result, "refused", what)
			default:
				require.NotEqual(t, "done", after[0].Result, what)
			}
			require.Equal(t, by.actor != "admin", status == http.StatusForbidden, what)
		}
	}
}
