package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time at which all commands run.
var now = time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)

const (
	firstID  = "019c79a0-0000-7000-8000-000000000001"
	secondID = "019c79a0-0000-7000-8000-000000000002"
	thirdID  = "019c79a0-0000-7000-8000-000000000003"
)

// fake is an API that gives fixed answers to "METHOD /path?query".
type fake struct {
	answers map[string]string
	stdin   io.Reader
	environ map[string]string
	// terminal replaces standard output and error.
	terminal *os.File
	// handler handles requests instead of the fake; nil for none.
	handler http.Handler

	mu    sync.Mutex
	asked []string
	sent  []string
}

// problem returns an answer that is an error: its first three characters are the status.
func problem(status, text string) string { return status + text }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	asked := r.Method + " " + r.URL.RequestURI()
	f.asked = append(f.asked, asked)
	f.sent = append(f.sent, string(body))
	f.mu.Unlock()
	answer, known := f.answers[asked]
	switch {
	case !known:
		answer = problem("404", `{"status":404,"detail":"no such resource"}`)
		fallthrough
	case strings.HasPrefix(answer, "4") || strings.HasPrefix(answer, "5"):
		w.WriteHeader(int(answer[0]-'0')*100 + int(answer[1]-'0')*10 + int(answer[2]-'0'))
		answer = answer[3:]
	}
	_, _ = io.WriteString(w, answer)
}

// run executes a command line against the fake.
func (f *fake) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var handler http.Handler = f
	if f.handler != nil {
		handler = f.handler
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	var out, notes bytes.Buffer
	p := &Program{
		Stdin: f.stdin, Stdout: &out, Stderr: &notes, Now: func() time.Time { return now },
		Getenv:      func(name string) string { return f.environ[name] },
		ServePages:  func(context.Context, Target, string) (bool, error) { return false, nil },
		UntilSignal: func(ctx context.Context) (context.Context, func()) { return ctx, func() {} },
		Connect: func(_ context.Context, to Target) (*apiclient.Client, func(), error) {
			if slices.Equal(to.Servers, []string{"http://down"}) {
				return nil, nil, errors.New("down")
			}
			api, err := apiclient.New(apiclient.Config{Server: server.URL})
			require.NoError(t, err)
			return api, api.Close, nil
		},
	}
	if f.terminal != nil {
		p.Stdout, p.Stderr = f.terminal, f.terminal
	}
	root := &cobra.Command{Use: "orchestrator", SilenceErrors: true, SilenceUsage: true}
	p.AddTo(root)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&notes)
	err = root.ExecuteContext(t.Context())
	return out.String(), notes.String(), err
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func jobJSON(id, status, more string) string {
	return `{"jobId":"` + id + `","jobType":"SLEEP_JOB","status":"` + status +
		`","createdAt":"2026-02-20T11:56:48Z","updatedAt":"2026-02-20T11:59:00Z"` + more + `}`
}
