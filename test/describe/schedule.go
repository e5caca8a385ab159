package describe

import (
	"encoding/json"
	"net/http"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// What the operations about schedules show.
var (
	sampleTick     = time.Date(2030, 1, 31, 5, 30, 0, 0, time.UTC)
	sampleSchedule = v1.ScheduleOf(job.Schedule{
		Tenant: "default", Name: "morning-report", Timing: job.Timing{Cron: "30 6 * * MON-FRI", Zone: "Europe/Berlin"},
		Overlap: job.OverlapSkip, CatchUp: job.CatchUpLast, CatchUpWindow: job.DefaultCatchUpWindow,
		Job:    json.RawMessage(`{"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}`),
		NextAt: sampleTick, LastTick: sampleTick.Add(-24 * time.Hour), LastJob: &sampleID, LastJobState: job.Succeeded,
		Counts: job.ScheduleCounts{Fired: 120, Skipped: 2}, CreatedAt: sampleSince.AddDate(-1, 0, 0), UpdatedBy: "token ops",
		UpdatedAt: sampleSince.AddDate(-1, 0, 0),
	}, true)
	sampleRuns = []v1.ScheduledRun{{
		At: sampleTick, Local: sampleTick.In(time.FixedZone("CET", 60*60)), DueAt: sampleTick,
	}}
)

// listed is a schedule as a list shows it.
func listed(s v1.Schedule) v1.Schedule {
	s.Spec.Job = nil
	return s
}

func pausedSchedule() v1.Schedule {
	paused := sampleSchedule
	paused.State, paused.NextAt = "paused", nil
	paused.Pause = &v1.SchedulePause{Since: sampleSince, PausedBy: "token ops", Reason: "month-end closing"}
	return paused
}

func noSuchSchedule() map[int]rejection {
	return map[int]rejection{http.StatusNotFound: {
		why: "There is no such schedule", example: v1.NewProblem(http.StatusNotFound, job.ErrNoSchedule.Error()),
	}}
}

func withNotYours(rejections map[int]rejection) map[int]rejection {
	rejections[http.StatusNotFound] = notYours()[http.StatusNotFound]
	return rejections
}

func scheduleIsConfigured(rejections map[int]rejection) map[int]rejection {
	rejections[http.StatusConflict] = rejection{
		why:     "A configuration sets the schedule",
		example: v1.NewProblem(http.StatusConflict, "a configuration sets this schedule: change it there, under schedules, and reload it with SIGHUP"),
	}
	return rejections
}

// scheduleOperations describe the operations on schedules, by their ids.
var scheduleOperations = map[string]operation{
	"list-schedules": {
		chapter: "Schedules", summary: "List schedules", description: "By tenant and name, without the jobs that they make.",
		answers: with(v1.ScheduleList{Schedules: []v1.Schedule{listed(sampleSchedule)}, NextCursor: sampleCursor}), rejections: notYours(),
	},
	"get-schedule": {
		chapter: "Schedules", summary: "See a schedule",
		description: "When its next tick is, and what became of the others. The job that it makes is shown to callers with the scope payloads.",
		answers:     with(sampleSchedule), rejections: noSuchSchedule(),
	},
	"set-schedule": {
		chapter: "Schedules", summary: "Set a schedule", counted: true,
		description: "Replaces the schedule of that name as a whole. Its next tick is in the future, and stays what it is if the timing does not change. Answers 409 for a schedule that a configuration sets.",
		takes:       v1.ScheduleSpec{}, requests: []request{
			{
				name: "cron", summary: "On workdays at 6:30 in Berlin", media: mediaJSON,
				body: `{"cron": "30 6 * * MON-FRI", "zone": "Europe/Berlin", "overlap": "skip", "job": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`,
			},
			{
				name: "every", summary: "Every quarter of an hour", media: mediaJSON,
				body: `{"every": "15m", "jitter": "30s", "catchUp": "none", "job": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`,
			},
			{
				name: "once", summary: "Once", media: mediaJSON,
				body: `{"at": "2030-01-31T12:00:00Z", "job": {"jobType": "SLEEP_JOB", "payload": {"sleepSeconds": 1}}}`,
			},
		},
		answers: with(sampleSchedule), rejections: scheduleIsConfigured(withNotYours(map[int]rejection{
			http.StatusUnprocessableEntity: {
				why:     "A value in the body cannot be accepted, or the job could not be submitted",
				example: v1.Invalid(v1.Mistake{Location: "#/cron", Message: "has no tick, ever: no such day exists"}),
			},
		})),
	},
	"delete-schedule": {
		chapter: "Schedules", summary: "Delete a schedule",
		description: "Jobs that it has made stay. Answers with the schedule as it was, and 409 for a schedule that a configuration sets.",
		answers:     with(sampleSchedule), rejections: scheduleIsConfigured(noSuchSchedule()),
	},
	"pause-schedule": {
		chapter: "Schedules", summary: "Pause a schedule",
		description: "It has no ticks until it is resumed. Jobs that it has made go on.",
		takes:       v1.SchedulePauseSpec{}, requests: []request{
			{name: "reason", summary: "And say why", media: mediaJSON, body: `{"reason": "month-end closing"}`},
		},
		answers: with(pausedSchedule()), rejections: noSuchSchedule(),
	},
	"resume-schedule": {
		chapter: "Schedules", summary: "Resume a schedule",
		description: "Its next tick is in the future: those during the pause are not caught up. It is no error if the schedule is not paused.",
		answers:     with(sampleSchedule), rejections: noSuchSchedule(),
	},
	"run-schedule": {
		chapter: "Schedules", summary: "Run a schedule's job now", counted: true,
		description: "Makes a job that belongs to no tick, whatever the overlap is and even if the schedule is paused. With an idempotency key you can repeat the request.",
		answers:     []answer{{status: http.StatusAccepted, media: mediaJSON, body: sampleAccepted}}, rejections: noSuchSchedule(),
	},
	"backfill-schedule": {
		chapter: "Schedules", summary: "Make the jobs of past ticks", counted: true,
		description: "Makes a job for each tick of the range that has none yet, at most 10,000. You can repeat the request: a tick has one job. Overlap and pause do not matter.",
		takes:       v1.BackfillSpec{}, requests: []request{
			{name: "range", summary: "A day", media: mediaJSON, body: `{"from": "2026-02-20T00:00:00Z", "to": "2026-02-20T23:59:59Z"}`},
		},
		answers: with(v1.Backfilled{Ticks: 96, Made: 90, Found: 6}), rejections: noSuchSchedule(),
	},
	"list-scheduled-runs": {
		chapter: "Schedules", summary: "See the next runs of a schedule",
		description: "As if it were not paused.",
		answers:     with(v1.ScheduledRuns{Runs: sampleRuns}), rejections: noSuchSchedule(),
	},
	"preview-schedule": {
		chapter: "Schedules", summary: "See the runs of a timing that is not stored",
		description: "Checks the timing, and stores nothing.",
		takes:       v1.PreviewSpec{}, requests: []request{
			{name: "berlin", summary: "The next three", media: mediaJSON, body: `{"cron": "30 6 * * MON-FRI", "zone": "Europe/Berlin", "limit": 3}`},
		},
		answers: with(v1.ScheduledRuns{Runs: sampleRuns}),
		rejections: map[int]rejection{http.StatusUnprocessableEntity: {
			why:     "A value in the body cannot be accepted",
			example: v1.Invalid(v1.Mistake{Location: "#/zone", Message: "is not a time zone; write a name of the IANA database, such as Europe/Berlin or UTC"}),
		}},
	},
}
