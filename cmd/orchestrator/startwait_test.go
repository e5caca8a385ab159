package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/blackhole"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

const waitingForDatabase = "waiting for the database"

// serveOn serves with an assembly that stands in, on a database of the test's,
// and returns the URL of its API as well.
func serveOn(t *testing.T, database string, args ...string) (*serving, string) {
	t.Helper()
	address := freeAddress(t)
	s := serveWith(t, t.TempDir(), func(context.Context, config.Config, config.DatabaseURL, []string, *slog.Logger) (*assembly, error) {
		return &assembly{api: api.Config{Jobs: pingable{}, Roles: job.AllRoles()}, run: untilDrained, close: func(context.Context) {}}, nil
	}, []string{"HOLDFAST_DATABASE__URL=" + database}, append(args, "--set", "server.address="+address)...)
	return s, "http://" + address
}

// answerOf returns the status, header and detail of an answer.
func answerOf(t *testing.T, method, url string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var problem struct{ Detail string }
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &problem), string(text))
	return answer.StatusCode, answer.Header, problem.Detail
}

// refusing is a PostgreSQL server that refuses every connection with an error.
func refusing(t *testing.T, sqlstate string) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				server := pgproto3.NewBackend(conn, conn)
				if _, err := server.ReceiveStartupMessage(); err != nil {
					return
				}
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: sqlstate, Message: "refused by the test"})
				_ = server.Flush()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

func TestServeWaitsForADatabaseThatDoesNotAnswerYet(t *testing.T) {
	proxy := pgtest.Between(t, pgtest.EmptyURL(t))
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	proxy.Down.Store(true)
	s, url := serveOn(t, strings.Replace(proxy.URL, "sslmode=disable", "sslmode=disable&sslpassword=s3cret", 1))
	line := s.log.await(t, waitingForDatabase)
	require.Equal(t, "WARN", line["level"])
	require.Contains(t, line["error"], "database unavailable")
	left, err := time.ParseDuration(line["give_up_in"].(string))
	require.NoError(t, err)
	require.InDelta(t, 5*time.Minute, left, float64(time.Minute), "a busy machine has taken its time")

	status, _, _ := answerOf(t, http.MethodGet, url+"/healthz")
	require.Equal(t, 200, status)
	for method, path := range map[string]string{http.MethodGet: "/readyz", http.MethodPost: "/jobs"} {
		var header http.Header
		var detail string
		require.Eventually(t, func() bool { // "starting" until the first try has failed
			status, header, detail = answerOf(t, method, url+path)
			return detail == "the server is waiting for its database"
		}, longWait, 5*time.Millisecond)
		require.Equal(t, 503, status, path)
		require.Equal(t, "application/problem+json", header.Get("Content-Type"))
		require.NotEmpty(t, header.Get("Retry-After"))
		require.Equal(t, "no-store", header.Get("Cache-Control"))
	}

	proxy.Down.Store(false)
	s.log.await(t, "listening")
	require.NotEmpty(t, s.log.await(t, "the database is available")["waited"])
	awaitReady(t, url)
	signalSelf(t, syscall.SIGTERM)
	require.Equal(t, exitOK, s.exit(t))
	require.NotContains(t, s.log.String(), "s3cret")
}

func TestServeWaitsForADatabaseThatMayRecover(t *testing.T) {
	readOnly := pgtest.EmptyURL(t)
	conn, err := pgx.Connect(t.Context(), readOnly)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$")
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	for name, it := range map[string]struct{ url, reason string }{
		"refuses connections": {"postgres://u:s3cret@127.0.0.1:1/d", "refused"},
		"has no address yet":  {"postgres://u:s3cret@nowhere.invalid/d", "nowhere.invalid"},
		"has no socket yet":   {"host=/nowhere password=s3cret user=u", "no such file"},
		"starts":              {"postgres://u:s3cret@" + refusing(t, "57P03") + "/d", "57P03"},
		"has no room":         {"postgres://u:s3cret@" + refusing(t, "53300") + "/d", "53300"},
		"is a standby":        {readOnly, "read-only"},
		"never answers":       {"postgres://u:s3cret@" + blackhole.Listen(t) + "/d", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := serveOn(t, it.url)
			require.Contains(t, s.log.await(t, waitingForDatabase)["error"], it.reason)
			require.NotContains(t, s.log.String(), "s3cret")
			status, _, _ := answerOf(t, http.MethodGet, url+"/readyz")
			require.Equal(t, 503, status)
			signalSelf(t, syscall.SIGTERM)
			require.Equal(t, exitOK, s.exit(t), "nothing had begun")
			s.log.await(t, "stopped")
		})
	}
}

func TestServeDoesNotWaitAfterPermanentErrors(t *testing.T) {
	missing, err := pgx.ParseConfig(pgtest.EmptyURL(t))
	require.NoError(t, err)
	for name, it := range map[string]struct {
		url, reason string
		code        int
	}{
		"wrong password":   {"postgres://u:s3cret@" + refusing(t, "28P01") + "/d", "28P01", exitFailure},
		"unknown database": {strings.ReplaceAll(missing.ConnString(), missing.Database, "nowhere"), "3D000", exitFailure},
		"malformed URL":    {"postgres://u:s3/cret@h/d", "database.url: is not the URL of a PostgreSQL database", exitUsage},
		"malformed string": {"host=h password=a s3cret", "database.url: is not the URL of a PostgreSQL database", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serveOn(t, it.url)
			require.Equal(t, it.code, s.exit(t))
			require.Contains(t, s.log.String(), it.reason)
			require.NotContains(t, s.log.String(), waitingForDatabase)
			require.NotContains(t, s.log.String(), "cret")
		})
	}
}

func TestServeGivesUpOnItsDatabaseAfterTheBound(t *testing.T) {
	s, _ := serveOn(t, "postgres://u:s3cret@127.0.0.1:1/d", "--set", "database.start_wait=1s")
	require.Equal(t, exitFailure, s.exit(t))
	require.Contains(t, s.log.String(), "orchestrator: gave up on the database after 1s (database.start_wait): ")
	require.NotContains(t, s.log.String(), "s3cret")

	s, _ = serveOn(t, "postgres://u@127.0.0.1:1/d", "--set", "database.start_wait=0s")
	require.Equal(t, exitFailure, s.exit(t))
	require.NotContains(t, s.log.String(), waitingForDatabase)

	s, _ = serveOn(t, "postgres://u@127.0.0.1:1/d", "--set", "database.start_wait=-1s")
	require.Equal(t, exitUsage, s.exit(t))
}

func TestProgramsThatWaitForOneDatabaseMigrateItOnce(t *testing.T) {
	proxy := pgtest.Between(t, pgtest.EmptyURL(t))
	proxy.Down.Store(true)
	programs := make([]*serving, 3)
	for i := range programs {
		programs[i], _ = serveOn(t, proxy.URL)
		programs[i].log.await(t, waitingForDatabase)
	}
	proxy.Down.Store(false)
	migrated := 0
	for _, s := range programs {
		s.log.await(t, "listening")
		migrated += strings.Count(s.log.String(), "schema brought up to date")
		s.cancel()
		require.Equal(t, exitOK, s.exit(t))
	}
	require.Equal(t, 1, migrated)
}

func TestMigrateUpWaitsAsLongAsTheFlagSays(t *testing.T) {
	proxy := pgtest.Between(t, pgtest.EmptyURL(t))
	proxy.Down.Store(true)
	code, _, stderr := execute(t, []string{"HOLDFAST_DATABASE__URL=" + proxy.URL}, "migrate", "up")
	require.Equal(t, exitFailure, code)
	require.NotContains(t, stderr, waitingForDatabase)
	stderrOf := &whenItSays{text: waitingForDatabase, do: func() { proxy.Down.Store(false) }}
	out := &records{}
	p := program{stdout: out, stderr: stderrOf, environ: []string{"HOLDFAST_DATABASE__URL=" + proxy.URL}}
	require.Equal(t, exitOK, p.run(t.Context(), []string{"migrate", "up", "--wait", "1m"}), stderrOf.String())
	require.Contains(t, out.String(), "applied")
}

func TestWaitingForADatabaseIsBoundedPacedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &records{}
		var tries []time.Time
		began, told := time.Now(), 0
		waits := patience{
			bound: 5 * time.Minute, setting: "database.start_wait",
			log: slog.New(slog.NewJSONHandler(log, nil)), waiting: func() { told++ },
		}
		err := waits.until(t.Context(), func(context.Context) error {
			tries = append(tries, time.Now())
			return job.ErrUnavailable
		}, nil)
		require.ErrorIs(t, err, job.ErrUnavailable)
		require.ErrorContains(t, err, "gave up on the database after 5m0s")
		require.Equal(t, 5*time.Minute, time.Since(began))
		require.Len(t, tries, told+1)
		for i := range tries[1:] {
			require.LessOrEqual(t, tries[i+1].Sub(tries[i]), longestPause)
		}
		require.Less(t, len(tries), 150)
		require.InDelta(t, 10, strings.Count(log.String(), waitingForDatabase), 1)
	})
}

func TestADatabaseThatFailsDuringTheStartIsAwaitedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := patience{bound: time.Minute, log: slog.New(slog.DiscardHandler), waiting: func() {}}
		var steps []string
		answers := []error{job.ErrUnavailable, nil}
		err := waits.until(t.Context(),
			func(context.Context) error { steps = append(steps, "reach"); return nil },
			func(context.Context) error {
				steps = append(steps, "begin")
				answer := answers[0]
				answers = answers[1:]
				return answer
			})
		require.NoError(t, err)
		require.Equal(t, []string{"reach", "begin", "reach", "begin"}, steps)

		broken := errors.New("broken")
		require.Equal(t, broken, waits.until(t.Context(),
			func(context.Context) error { return nil }, func(context.Context) error { return broken }))
	})
}
