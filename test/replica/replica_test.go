// Package replica tests the real program on a primary and its replica: lists come from the
// replica as long as it is not too far behind, and are answered whatever becomes of it.
package replica

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = rigtest.Patience
	glance   = 20 * time.Millisecond
	maxLag   = 4 * time.Second
	secret   = "cAnArY"
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/replica", "../../cmd/orchestrator"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// withPassword adds a password, for which the servers do not ask.
func withPassword(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	query := parsed.Query()
	query.Set("password", secret)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// site is an orchestrator on a primary and a replica.
type site struct {
	*pgtest.Pair
	*rig.Orchestrator
	t   *testing.T
	log string
}

func start(t *testing.T, pair *pgtest.Pair) *site {
	t.Helper()
	s := &site{Pair: pair, t: t, log: filepath.Join(t.TempDir(), "log")}
	log, err := os.Create(s.log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	s.Orchestrator, err = rig.New(t.Context(), filepath.Join(bin, "orchestrator"), t.TempDir(), log,
		"database.url="+pair.Primary, "database.replica_url="+withPassword(t, pair.Standby), "database.replica_max_lag="+maxLag.String(),
		"jobs.accept_unknown_types=true", "log.format=json", "log.level=debug")
	require.NoError(t, err)
	t.Cleanup(func() {
		if s.Running() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			require.NoError(t, s.ShutDown(ctx))
		}
		if t.Failed() {
			text, _ := os.ReadFile(s.log)
			t.Logf("end of the log:\n%s", text[max(0, len(text)-4096):])
		}
	})
	rigtest.Start(t, s.Orchestrator)
	return s
}

// answer is a page of text with its age, which is below zero if it is current.
type answer struct {
	text string
	age  time.Duration
}

func (s *site) ask(path string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.Address+path, nil)
	require.NoError(s.t, err)
	request.SetBasicAuth("admin", s.Password)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, "%s: %s", path, text)
	found := answer{text: string(text), age: -1}
	if age := response.Header.Get("X-Holdfast-Age"); age != "" {
		seconds, err := strconv.ParseFloat(age, 64)
		require.NoError(s.t, err)
		found.age = time.Duration(seconds * float64(time.Second))
	}
	return found
}

func (s *site) submit() (id string) {
	s.t.Helper()
	id = rigtest.Submit(s.t, s.Orchestrator, rig.Submission{JobType: "HELD", Hold: true, Payload: map[string]any{}})
	found, err := s.Get(s.t.Context(), id)
	require.NoError(s.t, err, "whoever submits a job finds it at once")
	require.Equal(s.t, id, found.ID)
	return id
}

func (s *site) awaitUsed(used bool) (now v1.Replica) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		return s.Call(s.t.Context(), http.MethodGet, "/debug/replica", nil, http.StatusOK, &now) == nil && now.Used == used
	}, patience, glance)
	return now
}

func (s *site) check() v1.Check {
	s.t.Helper()
	var diagnosis v1.Diagnosis
	require.NoError(s.t, s.Call(s.t.Context(), http.MethodGet, "/debug/doctor", nil, http.StatusOK, &diagnosis))
	for _, check := range diagnosis.Checks {
		if check.Name == "replica" {
			return check
		}
	}
	require.Fail(s.t, "no check of the replica")
	return v1.Check{}
}

// backends counts the connections of the name to a server.
func backends(t *testing.T, server, name string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1", name).Scan(&n))
	require.NoError(t, conn.Close(t.Context()))
	return n
}

func TestListsComeFromTheReplicaWhateverBecomesOfIt(t *testing.T) {
	s := start(t, pgtest.NewAsynchronousPair(t))
	first := s.submit()
	s.awaitUsed(true)
	require.Eventually(t, func() bool {
		list := s.ask("/jobs")
		return list.age >= 0 && strings.Contains(list.text, first)
	}, patience, glance)
	require.Positive(t, backends(t, s.Standby, "holdfast replica"))
	require.Zero(t, backends(t, s.Primary, "holdfast replica"))
	for _, path := range []string{
		"/jobs", "/debug/jobs", "/debug/jobs/count", "/dead-letter", "/dead-letter/groups", "/workflows", "/workflows/count", "/schedules",
		"/debug/operations", "/erasures", "/debug/audit", "/debug/plugins/events", "/debug/queues", "/debug/series", "/debug/workers/summary",
		"/metrics", "/retention/plan",
	} {
		require.GreaterOrEqual(t, s.ask(path).age, time.Duration(0), "%s comes from the replica", path)
	}
	for _, path := range []string{"/jobs/" + first, "/debug/jobs/" + first, "/debug/jobs/lookup?q=" + first, "/debug/workers", "/debug/limits", "/debug/pauses", "/job-types"} {
		require.Less(t, s.ask(path).age, time.Duration(0), "%s is current", path)
	}
	require.Equal(t, job.Fine, s.check().Severity, "%v", s.check())
	require.Contains(t, s.ask("/ui/health").text, "come from the replica of the database, which is at most")
	require.Contains(t, s.ask("/metrics", "Accept: text/plain").text, "\nholdfast_replica_used 1\n")

	// Its past, and the fresh list when the past is too long ago.
	s.PauseReplay(t)
	second := s.submit()
	stale := s.ask("/jobs")
	require.GreaterOrEqual(t, stale.age, time.Duration(0))
	require.Contains(t, stale.text, first)
	require.NotContains(t, stale.text, second)
	current := s.ask("/jobs", "Cache-Control: no-cache")
	require.Less(t, current.age, time.Duration(0))
	require.Contains(t, current.text, second)
	require.Eventually(t, func() bool {
		list := s.ask("/jobs")
		require.LessOrEqual(t, list.age, maxLag)
		require.Equal(t, list.age < 0, strings.Contains(list.text, second), "fresh, or old and marked as old")
		return list.age < 0
	}, patience, glance)
	status := s.awaitUsed(false)
	require.Contains(t, status.Reason, "behind")
	require.Greater(t, *status.LagSeconds, maxLag.Seconds())
	behind := s.check()
	require.Equal(t, job.Warning, behind.Severity)
	require.Contains(t, strings.Join(behind.Details, "\n"), "behind by")
	require.Contains(t, s.ask("/ui/health").text, "come from the primary, not from the replica")
	s.ResumeReplay(t)
	s.awaitUsed(true)
	caughtUp := s.ask("/jobs")
	require.GreaterOrEqual(t, caughtUp.age, time.Duration(0))
	require.Contains(t, caughtUp.text, second)

	s.KillStandby(t)
	for range 10 {
		require.Contains(t, s.ask("/jobs").text, second)
	}
	require.Equal(t, job.Warning, s.check().Severity)
	s.RestartStandby(t)
	s.awaitUsed(true)
	require.Equal(t, 2, strings.Count(s.logged(), "lists and figures come from the primary"), "once each time")

	s.Promote(t)
	require.Contains(t, s.ask("/jobs").text, second)
	s.awaitUsed(false)
	promoted := s.check()
	require.Equal(t, job.Warning, promoted.Severity)
	require.Contains(t, strings.Join(promoted.Details, "\n"), "no standby of the primary: it takes writes, on timeline 2")

	require.NotContains(t, s.ask("/debug/config").text+s.ask("/debug/replica").text+s.ask("/debug/doctor").text+s.ask("/ui/settings").text, secret)
	require.NoError(t, s.ShutDown(t.Context()))
	require.Contains(t, s.logged(), "replica of the database")
	require.Contains(t, s.logged(), "lists and figures come from the primary, not from the replica\",\"error\":\"the replica is no standby of the primary")
	require.NotContains(t, s.logged(), secret)
}

func (s *site) logged() string {
	s.t.Helper()
	text, err := os.ReadFile(s.log)
	require.NoError(s.t, err)
	return string(text)
}

func TestTheProgramStartsWithoutItsReplicaButNotWithAnother(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	foreign := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), "serve",
		"--set", "server.address=127.0.0.1:0", "--set", "database.url="+pair.Primary, "--set", "database.replica_url="+withPassword(t, pgtest.URL(t)))
	foreign.Dir = t.TempDir()
	output, err := foreign.CombinedOutput()
	var exited *exec.ExitError
	require.ErrorAs(t, err, &exited)
	require.Equal(t, 1, exited.ExitCode())
	require.Contains(t, string(output), "database.replica_url: the replica belongs to another database")
	require.Contains(t, string(output), "it must lead to a standby of the server of database.url")
	require.NotContains(t, string(output), secret)

	pair.KillStandby(t)
	s := start(t, pair)
	id := s.submit()
	require.Contains(t, s.ask("/jobs").text, id)
	require.False(t, s.awaitUsed(false).Used)
	pair.RestartStandby(t)
	s.awaitUsed(true)
	require.GreaterOrEqual(t, s.ask("/jobs").age, time.Duration(0))
}

// The command reads what is current, and only the doctor looks at the replica.
func TestTheDoctorExaminesTheReplicaWithoutAServer(t *testing.T) {
	pair := pgtest.NewAsynchronousPair(t)
	doctor := func(replica string) string {
		command := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), "doctor", "--direct", "--json",
			"--set", "database.url="+pair.Primary, "--set", "database.replica_url="+replica, "--set", "database.replica_max_lag=3s")
		command.Dir = t.TempDir()
		output, _ := command.CombinedOutput() // it exits with 1 if it finds problems
		return string(output)
	}
	require.Contains(t, doctor(pair.Standby), "The replica answers lists and figures; it is at most")
	require.Contains(t, doctor(pair.Primary), "no standby of the primary: it takes writes")
	require.Contains(t, doctor(pgtest.URL(t)), "belongs to another database")
	pair.KillStandby(t)
	require.Contains(t, doctor(pair.Standby), "since the replica cannot answer them")
}
