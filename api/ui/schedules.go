package ui

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func (s *site) schedules(r chi.Router) {
	r.Get("/schedules", s.serve(showSchedules))
	r.Get("/schedules/new", s.serve(newSchedule))
	r.Post("/schedules/new", s.serve(saveNewSchedule))
	r.Get("/schedules/{tenant}/{schedule}/edit", s.serve(editSchedule))
	r.Post("/schedules/{tenant}/{schedule}/edit", s.serve(saveSchedule))
	r.Get("/schedules/{tenant}/{schedule}", s.serve(showSchedule))
	r.Post("/schedules/{tenant}/{schedule}/pause", s.serve(pauseSchedule))
	r.Post("/schedules/{tenant}/{schedule}/resume", s.serve(resumeSchedule))
	r.Post("/schedules/{tenant}/{schedule}/run", s.serve(runSchedule))
}

// schedules is a page of the list.
type schedules struct {
	Schedules []scheduleRow
	// Next is the next page; empty on the last.
	Next string
}

// scheduleRow is a schedule.
type scheduleRow struct {
	v1.Schedule
}

// Path is the page of the schedule, or one below it.
func (s scheduleRow) Path(below ...string) string {
	return Root + client.Path(append([]string{"schedules", s.Tenant, s.Name}, below...)...)
}

// Timing is when it has ticks.
func (s scheduleRow) Timing() string {
	switch {
	case s.Spec.Cron != "":
		return s.Spec.Cron
	case s.Spec.Every != "":
		return "every " + s.Spec.Every
	default:
		return "once"
	}
}

// Class is the colour of its state.
func (s scheduleRow) Class() string {
	return map[string]string{"active": "ok", "paused": "paused"}[s.State]
}

func showSchedules(v *visit) (answer, error) {
	query := url.Values{}
	if cursor := v.query("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	var found v1.ScheduleList
	if err := v.get("/schedules", query, &found); err != nil {
		return nil, err
	}
	shown := schedules{}
	for _, one := range found.Schedules {
		shown.Schedules = append(shown.Schedules, scheduleRow{one})
	}
	if found.NextCursor != "" {
		shown.Next = Root + "/schedules?" + url.Values{"cursor": {found.NextCursor}}.Encode()
	}
	return view{Template: "schedules", Title: "Schedules", Data: shown}, nil
}

// schedulePage is a schedule with its next runs.
type schedulePage struct {
	scheduleRow
	// EditDenied says why it cannot be edited; empty if it can.
	EditDenied string
	Runs       []v1.ScheduledRun
	Reason     string
}

// schedulePath is the operation of the API for the schedule that the route names.
func (v *visit) schedulePath(below ...string) string {
	return client.Path(append([]string{"schedules", v.param("schedule")}, below...)...) + "?" + url.Values{"tenant": {v.param("tenant")}}.Encode()
}

func showSchedule(v *visit) (answer, error) { return v.schedulePage(nil) }

func (v *visit) schedulePage(refused *v1.Problem) (answer, error) {
	shown := schedulePage{Reason: v.form("reason")}
	tenant := url.Values{"tenant": {v.param("tenant")}}
	if err := v.get(client.Path("schedules", v.param("schedule")), tenant, &shown.Schedule); err != nil {
		return nil, err
	}
	shown.EditDenied = v.scheduleEditDenied(shown.Schedule)
	if shown.State == "active" {
		var runs v1.ScheduledRuns
		tenant.Set("limit", "5")
		if err := v.get(client.Path("schedules", v.param("schedule"), "next"), tenant, &runs); err != nil {
			return nil, err
		}
		shown.Runs = runs.Runs
	}
	return view{Template: "schedule", Title: "Schedule " + shown.Name, Data: shown, Problem: refused}, nil
}

func (v *visit) scheduleBack(notice string, undoBy string) back {
	row := scheduleRow{v1.Schedule{Tenant: v.param("tenant"), Name: v.param("schedule")}}
	done := back{To: v.returnTo(row.Path()), Notice: strings.ReplaceAll(notice, "%", row.Name)}
	if undoBy != "" {
		done.Undo = &undo{To: row.Path(undoBy)}
	}
	return done
}

func pauseSchedule(v *visit) (answer, error) {
	err := v.send(http.MethodPost, v.schedulePath("pause"), v1.SchedulePauseSpec{Reason: v.form("reason")}, nil)
	if problem := client.ProblemOf(err); problem != nil && problem.Status == http.StatusUnprocessableEntity {
		return v.schedulePage(problem)
	}
	if err != nil {
		return nil, err
	}
	return v.scheduleBack("Paused %.", "resume"), nil
}

func resumeSchedule(v *visit) (answer, error) {
	var before v1.Schedule
	if err := v.get(client.Path("schedules", v.param("schedule")), url.Values{"tenant": {v.param("tenant")}}, &before); err != nil && !isForbidden(err) {
		return nil, err
	}
	if err := v.send(http.MethodPost, v.schedulePath("resume"), nil, nil); err != nil {
		return nil, err
	}
	done := v.scheduleBack("Resumed %.", "pause")
	if before.Pause != nil {
		done.Undo.Fields = map[string]string{"reason": before.Pause.Reason}
	}
	return done, nil
}

func runSchedule(v *visit) (answer, error) {
	var made v1.Accepted
	if err := v.send(http.MethodPost, v.schedulePath("run"), nil, &made); err != nil {
		return nil, err
	}
	done := v.scheduleBack("Made a job of %.", "")
	done.To = Root + "/jobs/" + made.JobID.String()
	return done, nil
}
