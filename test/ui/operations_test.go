package ui

import (
	"context"
	"net/http"
	"path"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// operation is what the API says of one.
type operation struct {
	State                 string
	Expected, Found, Done int
	Skipped               map[string]int
	FinishedAt            *string
}

func (s *scene) operation(t testing.TB, id string) (o operation) {
	t.Helper()
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/debug/operations/"+id, nil, http.StatusOK, &o))
	return o
}

// begin starts an operation of the page's form, at a rate, and returns its id.
func (b *tab) begin(button, rate string) string {
	b.t.Helper()
	value[bool](b, `document.querySelector("#rate").value = ""; true`)
	b.keys("#rate", rate)
	b.press(button)
	require.NotEmpty(b.t, b.text("#operation-state"))
	return path.Base(b.path())
}

func TestAnOperationOutlivesItsTabAndItsOrchestratorAndStops(t *testing.T) {
	t.Parallel()
	const jobs = 120
	url, settings := database(t, postgres.server.URL()), []string{"worker.lease=5s", "worker.kill_grace=300ms"}
	first := sceneOn(t, url, settings...)
	db, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	count := func(query string, args ...any) (n int) {
		require.NoError(t, db.QueryRow(t.Context(), query, args...).Scan(&n))
		return n
	}
	// died counts the jobs that have died so often. A job that ran when its orchestrator was
	// killed has an interrupted attempt as well.
	died := func(times int) int {
		return count("select count(*) from (select from unsuccessful_attempts where outcome = 'failed' group by job_id having count(*) = $1) d", times)
	}
	first.bury(t, jobs, "order %d has no address")
	require.Equal(t, jobs, died(1))

	const form = "/ui/operations/new?state=dead&jobType=WORK&action=requeue"
	b := newTab(t, first.origin)
	b.login(first)
	b.open(form)
	require.Contains(t, b.text("#found"), "120 jobs")
	id := b.begin("Requeue 120 jobs", "10")
	require.Eventually(t, func() bool { return first.operation(t, id).Done > 0 }, patience, glance)
	b.close()
	require.NoError(t, first.Kill())

	second := sceneOn(t, url, append(settings, "worker.id=other")...)
	b = newTab(t, second.origin)
	b.login(second)
	b.open("/ui/operations/" + id)
	b.await(`document.querySelector("#operation-state").dataset.announce == "The operation is finished"`, "it goes on elsewhere")
	done := second.operation(t, id)
	require.Equal(t, jobs, done.Found)
	skipped := 0
	for _, n := range done.Skipped {
		skipped += n
	}
	require.Equal(t, jobs, done.Done+skipped, "the dry run has counted as many")
	require.Equal(t, jobs, done.Done)
	require.Eventually(t, func() bool { return died(2) == jobs }, patience, glance, "each once")

	b.open(form)
	stopped := b.begin("Requeue 120 jobs", "1")
	require.Eventually(t, func() bool { return second.operation(t, stopped).Done > 0 }, patience, glance)
	b.press("Stop")
	require.Contains(t, b.text("#operation-state"), "stopped")
	after := second.operation(t, stopped)
	require.Equal(t, "stopped", after.State)
	require.Less(t, after.Done, jobs)
	require.Eventually(t, func() bool { return count("select count(*) from jobs where finished_at is null") == 0 }, patience, glance)
	require.Equal(t, after.Done, died(3), "nothing is requeued after the stop")
	require.Equal(t, after.Done, second.operation(t, stopped).Done)
}
