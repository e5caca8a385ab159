package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func someSchedules() map[string]any {
	next, last := noon.Add(time.Hour), noon.Add(-time.Hour)
	id, _ := job.ParseID("019aa3e5-8a5c-7b0e-9d0c-52f1c1b4f3aa")
	report := v1.Schedule{
		Name: "daily/<b>", Tenant: "acme", State: "active", JobType: "REPORT", NextAt: &next, LastTick: &last, LastJobID: &id, LastStatus: job.StatusCompleted,
		Spec:  v1.ScheduleSpec{ScheduleTiming: v1.ScheduleTiming{Cron: "0 6 * * 1-5", Zone: "Europe/Berlin"}, Overlap: job.OverlapAllow, CatchUp: job.CatchUpLast},
		Ticks: v1.ScheduleTicks{Fired: 1234}, Configured: true, UpdatedAt: last,
	}
	paused := v1.Schedule{
		Name: "sweep", Tenant: "default", State: "paused", JobType: "SWEEP", Spec: v1.ScheduleSpec{ScheduleTiming: v1.ScheduleTiming{Every: "15m0s"}},
		Pause: &v1.SchedulePause{Since: last, PausedBy: "ann", Reason: "<img onerror=x>"}, LastError: "payload is wrong", UpdatedBy: "ann", UpdatedAt: last,
	}
	return map[string]any{
		"GET /schedules":                      v1.ScheduleList{Schedules: []v1.Schedule{report, paused}, NextCursor: "c"},
		"GET /schedules/daily%2F%3Cb%3E":      report,
		"GET /schedules/daily%2F%3Cb%3E/next": v1.ScheduledRuns{Runs: []v1.ScheduledRun{{At: next, Local: next, DueAt: next}}},
		"GET /schedules/sweep":                paused,
		"POST /schedules/sweep/pause":         paused, "POST /schedules/sweep/resume": paused, "POST /schedules/sweep/run": v1.Accepted{JobID: id},
	}
}

func TestSchedulesAreShown(t *testing.T) {
	p := newPages(someSchedules())
	requireGolden(t, "schedules", p.get("/ui/schedules"))
	requireGolden(t, "schedule", p.get("/ui/schedules/acme/daily%2F%3Cb%3E"))
	requireGolden(t, "schedule-paused", p.get("/ui/schedules/default/sweep"))
	requireGolden(t, "schedules-empty", newPages(map[string]any{"GET /schedules": v1.ScheduleList{}}).get("/ui/schedules"))
	requireNothingToDo(t, newPagesFor(observers, someSchedules()).get("/ui/schedules/default/sweep", "Authorization: Bearer observer"))
}

func TestASchedulesActs(t *testing.T) {
	p := newPages(someSchedules())
	for _, act := range []string{"pause", "resume", "run"} {
		w := p.post("/ui/schedules/default/sweep/"+act, "reason", "why")
		require.Equal(t, 303, w.Code)
		undo := map[string]string{"pause": "resume", "resume": "pause"}[act]
		notice := p.get("/ui/settings", "Cookie: "+w.Header().Get("Set-Cookie")).Body.String()
		require.Equal(t, undo != "", strings.Contains(notice, `action="/ui/schedules/default/sweep/`+undo+`">`), notice)
	}
	require.Equal(t, []string{
		`POST /schedules/sweep/pause?tenant=default {"reason":"why"}`, "POST /schedules/sweep/resume?tenant=default", "POST /schedules/sweep/run?tenant=default",
	}, p.api.sent)
	answers := someSchedules()
	answers["POST /schedules/sweep/pause"] = v1.Invalid(v1.Mistake{Location: "#/reason", Message: "is too long"})
	w := newPages(answers).post("/ui/schedules/default/sweep/pause", "reason", "long")
	require.Equal(t, 422, w.Code)
}
