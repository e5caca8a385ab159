package command

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// onTerminal runs a command whose output goes to a terminal, and returns what
// the terminal received.
func onTerminal(t *testing.T, f *fake, args ...string) (string, error) {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = screen.Close() }()
	require.NoError(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: 80}))
	f.terminal = terminal
	seen := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		_, _ = io.Copy(&out, screen) // It ends when nobody has the terminal open.
		seen <- out.String()
	}()
	_, _, err = f.run(t, args...)
	require.NoError(t, terminal.Close())
	return <-seen, err
}

func TestATerminalGetsColoursUnlessToldOtherwise(t *testing.T) {
	text, err := onTerminal(t, usual(), "list")
	require.NoError(t, err)
	require.Contains(t, text, "\x1b[32mCOMPLETED\x1b[0m")
	for _, environ := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		f := usual()
		f.environ = environ
		text, err = onTerminal(t, f, "list")
		require.NoError(t, err)
		require.NotContains(t, text, "\x1b[3")
	}
	text, err = onTerminal(t, usual(), "list", "--color=never")
	require.NoError(t, err)
	require.NotContains(t, text, "\x1b[3")
}

func TestHandlersCannotSteerTheTerminalByJSON(t *testing.T) {
	text, err := onTerminal(t, usual(), "get", firstID, "--json")
	require.NoError(t, err)
	require.Contains(t, text, `"result":{"text":"\u001b]0;x\u0007 \u009b"}`)
	require.NotContains(t, text, "\u009b")
}

func TestAWaitIsShownOnATerminal(t *testing.T) {
	f := usual()
	f.answers["GET /jobs/"+firstID+"?wait=1s"] = jobJSON(firstID, "COMPLETED", ran+`,"progress":"\u001b[2J"`)
	text, err := onTerminal(t, f, "get", firstID, "--wait")
	require.NoError(t, err)
	require.Contains(t, text, "SLEEP_JOB  COMPLETED  \"\\u001b[2J\"  0s")
	require.Contains(t, text, "\r\x1b[K")
	require.NotContains(t, text, "\x1b[2J")
}

func TestTheLiveLineNamesTheAttemptWhereThatIsAllowed(t *testing.T) {
	f := &turning{fake: usual()}
	f.answers["GET /debug/jobs/"+secondID] = running
	f.turn = func(asked int) {
		f.answers["GET /jobs/"+secondID+"?wait=1s"] = jobJSON(secondID, []string{"RUNNING", "COMPLETED"}[min(asked-1, 1)], during)
	}
	f.handler = f
	text, err := onTerminal(t, f.fake, "get", secondID, "--wait")
	require.NoError(t, err)
	require.Contains(t, text, `SLEEP_JOB  RUNNING  attempt 1 of 4  {"done":3,"of":10}  0`)
}

// turning is a fake whose answers change with each wait.
type turning struct {
	*fake
	turn  func(asked int)
	waits int
}

func (f *turning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.RawQuery, "wait=") {
		f.waits++
		f.turn(f.waits)
	}
	f.fake.ServeHTTP(w, r)
}

func TestABatchShowsItsProgressOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.ndjson")
	require.NoError(t, os.WriteFile(path, []byte("{}\n{}\n"), 0o600))
	f := &fake{answers: map[string]string{"POST /jobs/batch?atomic=false": `{"index":0,"job":{}}
{"index":1,"problem":{"detail":"bad"}}
{"done":true,"accepted":1,"refused":1}
`}}
	text, err := onTerminal(t, f, "submit", "--batch", path)
	require.Equal(t, Exit{CodeFailed}, err)
	require.Contains(t, text, "█")
	require.Contains(t, text, "  1 job  ")
	require.Contains(t, text, "\r\x1b[Korchestrator: line 2: bad\r\n", "above the bar")
	require.Contains(t, text, "\r\x1b[K\x1b[32m1\x1b[0m accepted, \x1b[31m1\x1b[0m refused")
}
