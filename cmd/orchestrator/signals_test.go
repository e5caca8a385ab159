package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signalSelf sends this process a signal.
func signalSelf(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, syscall.Kill(os.Getpid(), s))
}

// whenItSays does something once, when a text has been written.
type whenItSays struct {
	records
	text string
	do   func()
	done bool
}

func (w *whenItSays) Write(p []byte) (int, error) {
	n, err := w.records.Write(p)
	if !w.done && strings.Contains(w.records.String(), w.text) {
		w.done = true
		w.do()
	}
	return n, err
}

func TestASignalEndsAWaitAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	waiting := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	stdin, typing := io.Pipe() // Where nobody types.
	defer func() { require.NoError(t, typing.Close()) }()
	for _, args := range [][]string{{"get", "x", "--wait"}, {"submit", "--batch", "-"}} {
		ended := make(chan outcome, 1)
		go func() { ended <- executeWith(t, stdin, []string{"HOLDFAST_SERVER=" + server.URL}, args...) }()
		if args[0] == "submit" {
			_, err := io.WriteString(typing, "{}\n")
			require.NoError(t, err)
		}
		<-waiting
		signalSelf(t, syscall.SIGINT)
		select {
		case got := <-ended:
			require.Equal(t, 130, got.code)
			require.Equal(t, "orchestrator: stopped by signal: interrupt\n", got.stderr)
		case <-time.After(longWait):
			t.Fatal("the command does not end")
		}
	}
}

func TestASignalInABatchSaysWhichResultsAreUnknown(t *testing.T) {
	t.Chdir(t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_, _ = io.WriteString(w, `{"index":0,"job":{}}`+"\n"+`{"index":1,"problem":{"detail":"bad"}}`+"\n")
		_ = control.Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	var out bytes.Buffer
	errs := whenItSays{text: "line 2", do: func() { signalSelf(t, syscall.SIGINT) }}
	p := program{
		stdin: strings.NewReader("{}\n{}\n{}\n"), stdout: &out, stderr: &errs, assemble: assemble,
		environ: []string{"HOLDFAST_SERVER=" + server.URL},
	}
	require.Equal(t, 130, p.run(t.Context(), []string{"submit", "--batch", "-"}))
	require.Regexp(t, `^at least 1 accepted, 1 refused in \S+\n$`, out.String())
	require.Equal(t, "orchestrator: line 2: bad\n"+
		"orchestrator: the answer broke off after line 2: stopped by signal: interrupt\n"+
		"  Jobs of later lines may have been accepted. If every line has an idempotencyKey, you can safely send all of them again.\n", errs.String())
}

func TestASignalIsTheCauseOfTheContextsEnd(t *testing.T) {
	ctx, release := endOnSignal(t.Context())
	defer release()
	signalSelf(t, syscall.SIGTERM)
	<-ctx.Done()
	require.Equal(t, stoppedError{syscall.SIGTERM}, context.Cause(ctx))
}
