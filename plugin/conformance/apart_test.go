package conformance_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/plugin/conformance"
)

// envApart says that this process is one of runApart's.
const envApart = "CONFORMANCE_APART"

// answer is what a process of runApart writes to its standard output.
type answer struct {
	Report conformance.Report
	Error  string
}

// runApart runs the checks in a process of their own. A run takes every process that
// its own starts meanwhile for the binary's, so parallel tests need one each.
func runApart(t *testing.T, o conformance.Options) conformance.Report {
	t.Helper()
	var asked, said bytes.Buffer
	require.NoError(t, gob.NewEncoder(&asked).Encode(o))
	apart := exec.CommandContext(t.Context(), os.Args[0])
	// The race detector sleeps for a second before a process exits.
	apart.Env = append(os.Environ(), envApart+"=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	apart.Stdin, apart.Stdout, apart.Stderr = &asked, &said, os.Stderr
	apart.Cancel = func() error { return apart.Process.Signal(os.Interrupt) }
	apart.WaitDelay = 30 * time.Second
	require.NoError(t, apart.Run())
	var a answer
	require.NoError(t, gob.NewDecoder(&said).Decode(&a))
	require.Empty(t, a.Error)
	return a.Report
}

// answerApart is the whole life of a process of runApart. An interrupt stops the
// checks, so that nothing is left of the binary.
func answerApart() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o conformance.Options
	if err := gob.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	var a answer
	report, err := conformance.Run(ctx, o)
	if err != nil {
		a.Error = err.Error()
	}
	a.Report = report
	if err := gob.NewEncoder(os.Stdout).Encode(a); err != nil {
		panic(err)
	}
}
