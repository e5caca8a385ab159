package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/blackhole"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// longWait bounds every wait for something that should happen soon. A busy machine may need
// seconds for anything.
const longWait = 2 * time.Minute

// pingable stands in for the ledger: only its Ping is called.
type pingable struct{ api.Jobs }

func (pingable) Ping(context.Context) error { return nil }

// records is a log that a test can wait on.
type records struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// await returns the first record with the message.
func (r *records) await(t *testing.T, message string) map[string]any {
	t.Helper()
	var found map[string]any
	require.Eventually(t, func() bool {
		for line := range strings.Lines(r.String()) {
			var record map[string]any
			if json.Unmarshal([]byte(line), &record) == nil && record["msg"] == message {
				found = record
				return true
			}
		}
		return false
	}, longWait, 5*time.Millisecond, "no record %q", message)
	return found
}

// serving is a program under way whose assembly is a stand-in.
type serving struct {
	log    *records
	out    *records
	code   chan int
	cancel context.CancelFunc
	closed chan struct{}
}

func serve(t *testing.T, run func(ctx, abort context.Context) error, args ...string) *serving {
	t.Helper()
	return serveIn(t, t.TempDir(), run, args...)
}

func serveIn(t *testing.T, directory string, run func(ctx, abort context.Context) error, args ...string) *serving {
	t.Helper()
	return serveAssembled(t, directory, func(closed chan struct{}) (*assembly, error) {
		return &assembly{api: api.Config{Jobs: pingable{}, Roles: job.AllRoles()}, run: run, close: func(context.Context) { close(closed) }}, nil
	}, args...)
}

func serveAssembled(t *testing.T, directory string, assemble func(closed chan struct{}) (*assembly, error), args ...string) *serving {
	t.Helper()
	closed := make(chan struct{})
	s := serveWith(t, directory, func(context.Context, config.Config, config.DatabaseURL, []string, *slog.Logger) (*assembly, error) {
		return assemble(closed)
	}, []string{"HOLDFAST_DATABASE__URL=" + pgtest.EmptyURL(t)}, args...)
	s.closed = closed
	return s
}

// serveWith serves with an assembler of the test's, or the program's own.
func serveWith(t *testing.T, directory string, assemble assembler, environ []string, args ...string) *serving {
	t.Helper()
	t.Chdir(directory)
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{log: &records{}, out: &records{}, code: make(chan int, 1), cancel: cancel}
	program := program{
		stdout: s.out, stderr: s.log, assemble: assemble,
		environ: append(environ, "HOLDFAST_SERVER__ADDRESS=127.0.0.1:0"),
	}
	go func() { s.code <- program.run(ctx, append([]string{"serve"}, args...)) }()
	t.Cleanup(cancel)
	return s
}

func (s *serving) exit(t *testing.T) int {
	t.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(longWait):
		t.Fatalf("the program does not end:\n%s", s.log)
		return 0
	}
}

func get(t *testing.T, url string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// awaitReady waits until the probe succeeds: the database has a second for it, which may be
// too short on a busy machine.
func awaitReady(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, err := get(t, url+"/readyz")
		return err == nil && code == 200
	}, longWait, 5*time.Millisecond)
}

func untilDrained(ctx, _ context.Context) error { <-ctx.Done(); return nil }

func TestServeMigratesAnswersAndDrainsOnASignal(t *testing.T) {
	pgtest.EmptyURL(t) // the tests' own server, which stays
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s := serve(t, untilDrained)
	url := s.log.await(t, "listening")["url"].(string)
	require.NotZero(t, s.log.await(t, "schema brought up to date")["migrations"])
	awaitReady(t, url)

	signalSelf(t, syscall.SIGTERM)
	require.Equal(t, exitOK, s.exit(t))
	<-s.closed
	_, err := get(t, url+"/readyz")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestServeDrainsWhenItsContextEnds(t *testing.T) {
	s := serve(t, untilDrained)
	s.log.await(t, "listening")
	s.cancel()
	require.Equal(t, exitOK, s.exit(t))
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	for name, run := range map[string]func(ctx, abort context.Context) error{
		"worker that minds the abort": func(_, abort context.Context) error { <-abort.Done(); return nil },
		"worker that hangs":           func(context.Context, context.Context) error { <-t.Context().Done(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, run)
			s.log.await(t, "listening")
			signalSelf(t, syscall.SIGINT)
			s.log.await(t, "stopping: running jobs may finish; a second signal stops at once")
			signalSelf(t, syscall.SIGINT)
			require.Equal(t, 130, s.exit(t))
		})
	}
}

// Something of a handler hangs, and nobody can end it.
func TestASecondSignalWhilePluginsStopStopsAtOnce(t *testing.T) {
	closing := make(chan struct{})
	s := serveAssembled(t, t.TempDir(), func(chan struct{}) (*assembly, error) {
		return &assembly{api: api.Config{Jobs: pingable{}, Roles: job.AllRoles()}, run: untilDrained, close: func(abort context.Context) {
			close(closing)
			_ = await(abort, nil)
		}}, nil
	})
	s.log.await(t, "listening")
	signalSelf(t, syscall.SIGTERM)
	<-closing
	signalSelf(t, syscall.SIGTERM)
	s.exit(t)
}

func TestServeEndsWithItsWorker(t *testing.T) {
	s := serve(t, func(context.Context, context.Context) error { return errors.New("worker broke") })
	require.Equal(t, exitFailure, s.exit(t))
	require.Contains(t, s.log.String(), "orchestrator: worker broke")
}

func TestAPortInUseIsReportedBeforeAnythingStarts(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	address := taken.Addr().String()
	s := serve(t, untilDrained, "--set", "server.address="+address)
	require.Equal(t, exitFailure, s.exit(t))
	require.Contains(t, s.log.String(), address+" is in use by another program; choose another server.address")
	require.NotContains(t, s.log.String(), "database")
}

func TestUsageErrorsExitWithTwo(t *testing.T) {
	for _, args := range [][]string{{"--set", "nothing=1"}, {"--config", "missing.yaml"}, {"--unknown"}} {
		s := serve(t, untilDrained, args...)
		require.Equal(t, exitUsage, s.exit(t), args)
	}
}

func TestPasswordIsNotLogged(t *testing.T) {
	s := serve(t, untilDrained, "--set", "database.start_wait=0s", "--set", "database.url=postgres://u:s3cret@127.0.0.1:1/d")
	require.Equal(t, exitFailure, s.exit(t))
	require.Contains(t, s.log.String(), "postgres://u:xxxxx@127.0.0.1:1/d")
	require.NotContains(t, s.log.String(), "s3cret")
}

func TestServeGivesUpOnADatabaseThatNeverAnswers(t *testing.T) {
	began := time.Now()
	s := serve(t, untilDrained, "--set", "database.start_wait=0s", "--set", "database.url=postgres://u@"+blackhole.Listen(t)+"/d")
	require.Equal(t, exitFailure, s.exit(t))
	require.Less(t, time.Since(began), 6*postgres.ConnectTimeout)
	require.Contains(t, s.log.String(), "timeout")
}

func TestClientsReachAWildcardAddressAtLocalhost(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:80": "localhost:80", "[::]:80": "localhost:80", "[::1]:80": "[::1]:80", "10.0.0.1:80": "10.0.0.1:80"} {
		require.Equal(t, want, reachable(address))
	}
}
