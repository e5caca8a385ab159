package command

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// onTerminal runs a command whose output goes to a terminal of 80 columns, and
// returns what the terminal received.
func onTerminal(t *testing.T, f *fake, args ...string) (string, error) {
	t.Helper()
	return onTerminalOf(t, 80, f, args...)
}

func onTerminalOf(t *testing.T, columns uint16, f *fake, args ...string) (string, error) {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = screen.Close() }()
	require.NoError(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: columns}))
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

func TestATerminalGetsColorsByDefault(t *testing.T) {
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

func TestJSONFromHandlersCannotSteerTheTerminal(t *testing.T) {
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

func TestTheLiveLineNamesTheAttemptIfAllowed(t *testing.T) {
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

// busy returns an API with the long lists of a busy system.
func busy() *fake {
	const (
		progress  = `,"startedAt":"2026-02-20T11:59:00Z","progress":{"sent":71204,"of":250000,"list":"newsletter-2026-02"}`
		letter    = `{"jobId":"` + firstID + `","jobType":"billing.invoice.render","tenant":"acme-international","deadAt":"2026-02-14T11:56:48Z","attempts":8,"lastError":"render: the template names a font that is not installed here: Adobe Caslon Pro"}`
		described = `{"jobType":"billing.invoice.render","plugin":"billing","version":"v12.4.1","description":"Renders an invoice as PDF and puts it where the customer finds it.","maxAttempts":10,"timeoutSeconds":330,"retry":{"backoff":"exponential","initialDelaySeconds":0.25,"factor":1.5,"maxDelaySeconds":86400,"jitterMin":0.75,"jitterMax":1.25,"immediateAfterTimeout":true},"hasSchema":true}`
		worker    = `{"workerId":"orchestrator-eu-west-1b-7f9c","host":"h","pid":4194303,"roles":["worker"],"condition":"stopped","startedAt":"2026-02-10T07:00:00Z","lastHeartbeat":"2026-02-20T11:00:00Z","jobs":{"running":1000,"succeeded":123456789,"dead":12345,"canceled":54321}}`
		queue     = `{"jobType":"billing.invoice.render","queued":1234567,"oldestQueuedSeconds":98765,"scheduled":12345,"held":123,"retrying":4567,"running":1000,"dead":12345,"served":true}`
		billing   = `{"version":"v12.4.1","sha256":"2c26b46b68ffc68f","name":"billing-and-invoices","path":"/opt/b","state":"disabled","jobTypes":[],"pids":[17,18],"processes":12,"running":123,"free":117,"isolated":1,"draining":0,"restarts":2,"crashes":41,"lastSwap":` + rolledBack + `}`
		timeline  = `"attempts":[{"number":12,"fence":1,"outcome":"lease_expired","worker":"orchestrator-eu-west-1b-7f9c","plugin":"billing","pluginVersion":"v12.4.1","claimedAt":"2026-02-20T11:50:00Z","endedAt":"2026-02-20T11:50:30Z","durationSeconds":312.5,"code":"TIMEOUT","error":"took longer than 5m30s, and did not mind the cancel"}]`
	)
	f := usual()
	f.answers["GET /jobs?limit=100"] = `{"jobs":[` + strings.Replace(jobJSON(firstID, "COMPLETED", progress), "SLEEP_JOB", "billing.invoice.render", 1) + `,` + jobJSON(secondID, "PENDING", "") + `]}`
	f.answers["GET /dead-letter?limit=100"] = `{"deadLetters":[` + letter + `]}`
	f.answers["GET /job-types"] = `{"jobTypes":[` + described + `]}`
	f.answers["GET /debug/workers"] = `{"workers":[` + worker + `]}`
	f.answers["GET /debug/queues"] = `{"queues":[` + queue + `],"unserved":[]}`
	f.answers["GET /debug/doctor"] = `{"severity":"ok","checks":[{"name":"leases","severity":"ok","summary":"Every lease has a live owner, or is taken over in time by whoever finds it.","details":[]}]}`
	f.answers["GET /debug/plugins"] = `{"plugins":[` + billing + `]}`
	f.answers["GET /debug/jobs/"+firstID] = detail[:strings.Index(detail, `"attempts":`)] + timeline + `}`
	return f
}

func TestTablesFitTheTerminal(t *testing.T) {
	for _, args := range [][]string{
		{"list"}, {"dead-letter", "list"}, {"job-types"}, {"workers"}, {"queues"}, {"plugins", "list"}, {"metrics"}, {"inspect", firstID}, {"doctor"},
	} {
		for _, columns := range []uint16{60, 80, 100, 132} {
			t.Run(strings.Join(args, " ")+" "+strconv.Itoa(int(columns)), func(t *testing.T) {
				text, err := onTerminalOf(t, columns, busy(), append(args, "--color=never")...)
				if err != nil {
					require.Equal(t, Exit{CodeFound}, err)
				}
				table := text[strings.LastIndex(text, "\r\x1b[K")+1:]
				table = strings.TrimPrefix(table, "\x1b[K")
				switch args[0] {
				case "inspect": // above it are values of any length, each whole
					_, table, _ = strings.Cut(text, "\r\n\r\n")
					table, _, _ = strings.Cut(table, "\r\n\r\n")
				case "plugins": // below it are remarks
					table, _, _ = strings.Cut(text, "billing-and-invoices: ")
				}
				require.NotEmpty(t, table)
				for line := range strings.Lines(table) {
					require.LessOrEqual(t, show.Width(strings.TrimRight(line, "\r\n")), int(columns), text)
				}
				if columns <= 80 {
					golden(t, "terminal-"+args[0]+"-"+strconv.Itoa(int(columns)), strings.ReplaceAll(table, "\r\n", "\n"))
				}
			})
		}
	}
}

// In a pipe every row is one whole line.
func TestTablesAreNeverCutWithoutATerminal(t *testing.T) {
	for args, want := range map[string]string{
		"list":             firstID + `  billing.invoice.render  COMPLETED  3m12s  1m00s  {"sent":71204,"of":250000,"list":"newsletter-2026-02"}`,
		"dead-letter list": "render: the template names a font that is not installed here: Adobe Caslon Pro",
		"job-types":        "immediate after a timeout  Renders an invoice as PDF and puts it where the customer finds it.",
	} {
		f := busy()
		f.environ = map[string]string{"COLUMNS": "40"}
		stdout, _, err := f.run(t, strings.Fields(args)...)
		require.NoError(t, err)
		require.Contains(t, stdout, want+"\n")
	}
}
