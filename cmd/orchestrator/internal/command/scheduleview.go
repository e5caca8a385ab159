package command

import (
	"strings"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/apiclient"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

func (s *session) scheduleTable() *show.Table {
	return show.NewTable(s.out, "NAME", "TENANT", "STATE", "JOB TYPE", "WHEN", "NEXT", "LAST", "LAST STATUS", "LAST ERROR").CutLast()
}

func (s *session) scheduleRow(table *show.Table, one v1.Schedule) {
	next, last := "", ""
	if one.NextAt != nil {
		next = "in " + show.Age(-s.since(*one.NextAt))
	}
	if one.LastTick != nil {
		last = s.ago(*one.LastTick)
	}
	table.Row(one.Name, one.Tenant, scheduleState(one), one.JobType, when(one.Spec.ScheduleTiming), next, last, string(one.LastStatus), one.LastError)
}

func scheduleState(one v1.Schedule) show.Cell {
	state := show.Cell{Text: one.State}
	switch {
	case one.LastError != "":
		state.Style = show.Bad
	case one.State == "active":
		state.Style = show.Good
	}
	return state
}

// when is a timing in a few words.
func when(t v1.ScheduleTiming) string {
	switch {
	case t.Cron != "":
		return strings.TrimSpace(t.Cron + " " + t.Zone)
	case t.Every != "":
		return "every " + t.Every
	case t.At != nil:
		return "at " + instant(*t.At)
	}
	return ""
}

// showScheduleAnswer prints the answer about one schedule.
func (s *session) showScheduleAnswer(answer apiclient.Answer, err error) error {
	if err != nil {
		return err
	}
	return present(s, answer, (*session).showSchedule)
}

func (s *session) showSchedule(one v1.Schedule) error {
	fields := show.NewFields(s.out)
	fields.Add("NAME", one.Name)
	fields.Add("TENANT", one.Tenant)
	fields.Add("STATE", scheduleState(one))
	if one.Pause != nil {
		fields.Add("PAUSED", s.moment(&one.Pause.Since))
		fields.Add("PAUSED BY", one.Pause.PausedBy)
		fields.Add("REASON", one.Pause.Reason)
	}
	fields.Add("WHEN", when(one.Spec.ScheduleTiming))
	fields.Add("STARTS AT", s.moment(one.Spec.StartsAt))
	fields.Add("ENDS AT", s.moment(one.Spec.EndsAt))
	fields.Add("JITTER", one.Spec.Jitter)
	fields.Add("OVERLAP", string(one.Spec.Overlap))
	fields.Add("CATCH UP", string(one.Spec.CatchUp))
	fields.Add("JOB TYPE", one.JobType)
	fields.Add("JOB", compact(one.Spec.Job))
	fields.Add("NEXT", s.moment(one.NextAt))
	fields.Add("LAST", s.moment(one.LastTick))
	if one.LastJobID != nil {
		fields.Add("LAST JOB", one.LastJobID.String())
	}
	fields.Add("LAST STATUS", string(one.LastStatus))
	if one.LastError != "" {
		fields.Add("LAST ERROR", show.Cell{Text: one.LastError, Style: show.Bad})
		fields.Add("ERROR AT", s.moment(one.LastErrorAt))
	}
	for _, count := range []struct {
		name string
		n    int64
	}{{"FIRED", one.Ticks.Fired}, {"SKIPPED", one.Ticks.Skipped}, {"MISSED", one.Ticks.Missed}, {"FAILED", one.Ticks.Failed}} {
		if count.n > 0 {
			fields.Add(count.name, show.Count(count.n))
		}
	}
	if one.Configured {
		fields.Add("SET BY", "configuration")
	} else {
		fields.Add("SET BY", one.UpdatedBy)
	}
	fields.Add("SET", s.moment(&one.UpdatedAt))
	return fields.Flush()
}

func (s *session) showRuns(answer apiclient.Answer, err error) error {
	if err != nil {
		return err
	}
	return present(s, answer, func(s *session, found v1.ScheduledRuns) error {
		table := show.NewTable(s.out, "RUN", "LOCAL", "JOB DUE", "IN")
		for _, run := range found.Runs {
			table.Row(instant(run.At), run.Local.Format(localTime), instant(run.DueAt), show.Right(show.Age(-s.since(run.At))))
		}
		return table.Flush()
	})
}

func (s *session) showBackfilled(done v1.Backfilled) error {
	table := show.NewTable(s.out, "RUNS", "MADE", "FOUND", "SKIPPED")
	table.Row(done.Ticks, done.Made, done.Found, done.Skipped)
	return table.Flush()
}
