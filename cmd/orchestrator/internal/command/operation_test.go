package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// counting is an API whose dry runs stop after each page, up to the page that fails.
type counting struct {
	pages, failing int
	sent           []map[string]any
}

func (a *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent := map[string]any{}
	if json.NewDecoder(r.Body).Decode(&sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a.sent = append(a.sent, sent)
	page := len(a.sent)
	if page == a.failing {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"status":403,"detail":"not you"}`)
		return
	}
	next := fmt.Sprintf(`,"more":true,"nextCursor":"c%d"`, page)
	if page >= a.pages {
		next = `,"more":false`
	}
	_, _ = fmt.Fprintf(w, `{"count":%d%s,"frozenAt":"2026-02-20T12:00:00.123456Z","samples":[],"warnings":[]}`, 600*page, next)
}

func TestADryRunCountsToItsEnd(t *testing.T) {
	api := &counting{pages: 3}
	stdout, stderr, err := (&fake{handler: api}).run(t, "operation", "start", "requeue", "--tag", "x", "--dry-run")
	require.NoError(t, err)
	require.Equal(t, "3,600 jobs\n", stdout)
	require.Empty(t, stderr)
	require.Len(t, api.sent, 3)
	for i, sent := range api.sent {
		require.Equal(t, true, sent["dryRun"])
		require.Equal(t, map[string]any{"tag": "x"}, sent["filter"])
		if i > 0 {
			require.Equal(t, fmt.Sprintf("c%d", i), sent["cursor"])
			require.Equal(t, "2026-02-20T12:00:00.123456Z", sent["frozenAt"])
		}
	}

	stdout, _, err = (&fake{handler: &counting{pages: 3}}).run(t, "operation", "start", "requeue", "--tag", "x", "--dry-run", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"count": 3600, "more": false, "frozenAt": "2026-02-20T12:00:00.123456Z", "samples": [], "warnings": []}`, stdout)
}

func TestADryRunShowsOnATerminalHowFarItIs(t *testing.T) {
	text, err := onTerminal(t, &fake{handler: &counting{pages: 2}}, "operation", "start", "requeue", "--tag", "x", "--dry-run")
	require.NoError(t, err)
	require.Contains(t, text, "Counting: 600+ jobs")
	require.True(t, strings.HasSuffix(text, "\r\x1b[K1,800 jobs\r\n"), "%q", text)
}

func TestADryRunThatFailsSaysWhatItHasCounted(t *testing.T) {
	stdout, stderr, err := (&fake{handler: &counting{pages: 3, failing: 3}}).run(t, "operation", "start", "requeue", "--tag", "x", "--dry-run")
	require.ErrorContains(t, err, "not you")
	require.Empty(t, stdout)
	require.Equal(t, "Until then, 1,800+ jobs were counted.\n", stderr)
}

// Whoever is about to start need not wait for the exact number.
func TestAStartCountsOnce(t *testing.T) {
	api := &counting{pages: 3}
	_, stderr, err := (&fake{handler: api, stdin: strings.NewReader("no\n")}).run(t, "operation", "start", "requeue", "--tag", "x")
	require.ErrorContains(t, err, "nothing was started")
	require.Contains(t, stderr, "Requeue 600+ jobs?")
	require.Len(t, api.sent, 1)
}
