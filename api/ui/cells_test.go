package ui_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// twoCells are the cells 0 and 1, of which the latter may be missing.
type twoCells struct{ away atomic.Bool }

func (c *twoCells) Cells() []ui.Cell {
	at := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	all := []ui.Cell{{Name: "0", URL: "http://cell-0.internal", Since: at}, {Name: "1", URL: "http://cell-1.internal", Since: at}}
	if c.away.Load() {
		all[1].Missing = "connection refused"
	}
	return all
}

func TestWhoHasNotLoggedInSeesNoCells(t *testing.T) {
	p := newLoginPagesOf(&twoCells{})
	require.NotContains(t, p.get("/ui/login").Body.String(), "cell", "nor does the page ask for them")
	session := cookieOf(t, p.post("/ui/login", "user", "admin", "password", "secret"))
	require.Contains(t, p.get("/ui/settings", session).Body.String(), `href="http://cell-1.internal/ui/settings"`)
}

func TestPagesOfCellsSayWhatIsMissingAndLeadToEachCell(t *testing.T) {
	cells := &twoCells{}
	pages := ui.Frame(ui.New(ui.Config{
		Cells: cells, Log: slog.New(slog.DiscardHandler), MaxFormBytes: 1 << 10,
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/dead-letter/groups":
				group := v1.DeadLetterGroup{JobType: "A", Message: "the bank of both"}
				if cells.away.Load() {
					group.Message = "the bank of one"
				}
				_ = json.NewEncoder(w).Encode(v1.DeadLetterGroups{Groups: []v1.DeadLetterGroup{group}})
			default:
				w.Header().Set("Content-Type", v1.ProblemMedia)
				w.WriteHeader(http.StatusMisdirectedRequest)
				_ = json.NewEncoder(w).Encode(v1.NewProblem(http.StatusMisdirectedRequest, "of one cell"))
			}
		}),
	}))
	see := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(""))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		pages.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	_, text := see(http.MethodGet, "/ui/dead-letters")
	require.Contains(t, text, "the bank of both")
	require.NotContains(t, text, "is missing here")
	require.Contains(t, text, `href="http://cell-1.internal/ui/dead-letters"`)
	require.Contains(t, text, `<a href="/ui/cells"`)

	cells.away.Store(true)
	_, text = see(http.MethodGet, "/ui/dead-letters")
	require.Contains(t, text, "Cell 1 is missing here since 12:00:00, with all its jobs: connection refused.")
	require.Contains(t, text, "the bank of one", "figures of both are not shown as those of one")
	cells.away.Store(false)
	_, text = see(http.MethodGet, "/ui/dead-letters")
	require.Contains(t, text, "the bank of both")

	for path, to := range map[string]string{
		"/ui/schedules":                    "/ui/schedules",
		"/ui/schedules/acme/nightly":       "/ui/schedules/acme/nightly",
		"/ui/types/A":                      "/ui/types/A",
		"/ui/operations/new?state=dead":    "/ui/operations/new?state=dead",
		"/ui/audit?actor=ann&cursor=of+us": "/ui/audit?actor=ann",
	} {
		status, text := see(http.MethodGet, path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, text, "Choose a cell", path)
		require.Equal(t, 2, strings.Count(text, `href="http://cell-0.internal`+to+`"`), "%s: above and in the page", path)
	}
	status, text := see(http.MethodPost, "/ui/types/A/pause")
	require.Equal(t, http.StatusMisdirectedRequest, status)
	require.Contains(t, text, "Nothing was changed.")
	require.Contains(t, text, `href="http://cell-1.internal/ui/types"`, "what was sent is not sent there")

	_, text = see(http.MethodGet, "/ui/cells?at=/ui/jobs?state=held%26cursor=x")
	require.Contains(t, text, `href="http://cell-1.internal/ui/jobs?state=held"`)
	_, text = see(http.MethodGet, "/ui/cells?at=//evil.example/ui/")
	require.NotContains(t, text, "internal//evil")
}
