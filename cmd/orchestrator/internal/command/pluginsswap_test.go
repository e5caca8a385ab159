package command

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inTurn gives one answer after the other to what was asked, and repeats the last one.
// To anything else it answers with a list of plugins.
func inTurn(asked string, answers ...func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path != asked {
			_, _ = io.WriteString(w, `{"plugins":[{"name":"mail","lastSwap":`+promoted+`}]}`)
			return
		}
		answers[0](w)
		if len(answers) > 1 {
			answers = answers[1:]
		}
	}
}

func TestASwapBehindAnotherIsRequestedAgain(t *testing.T) {
	for _, action := range []string{"swap", "restart"} {
		behind := func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":503,"detail":"another swap of the plugin is in progress; try again when it has ended"}`)
		}
		begun := func(w http.ResponseWriter) { _, _ = io.WriteString(w, promoted) }
		f := &fake{handler: inTurn("POST /debug/plugins/mail/"+action, behind, behind, begun)}
		out, notes, err := f.run(t, "plugins", action, "mail")
		require.NoError(t, err)
		require.Contains(t, out, "promoted")
		require.Equal(t, 1, strings.Count(notes, "another swap of the plugin is in progress"), notes)
	}
}

func TestALongSwapIsFollowedToItsEnd(t *testing.T) {
	for action, said := range map[string]string{
		"swap":    "The new version is starting or in its canary; you may interrupt this command, the swap goes on.\n",
		"restart": "Not all new processes are up; you may interrupt this command, the swap goes on.\n",
	} {
		underWay := strings.Replace(promoted, `,"endedAt":"2026-02-20T11:59:51Z","result":"promoted"`, "", 1)
		f := &fake{handler: inTurn("POST /debug/plugins/mail/"+action, func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, underWay)
		})}
		out, notes, err := f.run(t, "plugins", action, "mail")
		require.NoError(t, err)
		require.Contains(t, out, "promoted")
		require.Equal(t, said, notes)
	}
}
