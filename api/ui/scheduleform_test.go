package ui_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// editableAnswers have a schedule whose job is shown.
func editableAnswers() map[string]any {
	answers := someTypes()
	maps.Copy(answers, someSchedules())
	mail := answers["GET /schedules/sweep"].(v1.Schedule)
	mail.Name, mail.JobType = "digest", "SEND_EMAIL"
	mail.Spec.Job = json.RawMessage(`{"jobType":"SEND_EMAIL","priority":7,"tags":["a","b"],"callbackUrl":"https://example.com/?a=<b>","payload":{"to":"ann@example.com","n":1.50}}`)
	answers["GET /schedules/digest"] = mail
	answers["GET /schedules/new-one"] = v1.NewProblem(404, "no such schedule")
	answers["PUT /schedules/digest"], answers["PUT /schedules/new-one"] = mail, mail
	answers["POST /schedules/preview"] = v1.ScheduledRuns{Runs: []v1.ScheduledRun{{At: noon, Local: noon, DueAt: noon}}}
	return answers
}

func TestAScheduleIsMade(t *testing.T) {
	p := newPages(editableAnswers())
	require.Contains(t, p.get("/ui/schedules/new").Body.String(), `<option value="SEND_EMAIL">`)
	requireGolden(t, "schedule-new", p.get("/ui/schedules/new?type=SEND_EMAIL"))

	fields := []string{"jobType", "SEND_EMAIL", "name", "new-one", "every", "15m", "overlap", "skip", "catchUp", "none", "json", `{"n": 1.50}`, "tags", "a, b", "maxAttempts", "3", "other", `{"callbackUrl": "https://example.com/<x>"}`}
	w := p.post("/ui/schedules/new", append(fields, "preview", "on")...)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "<h3>Next runs</h3><ol><li>")
	require.Contains(t, w.Body.String(), `value="15m"`, "what was filled in stays")
	require.Equal(t, []string{`POST /schedules/preview {"every":"15m","limit":10}`}, p.api.sent)

	w = p.post("/ui/schedules/new", append(fields, "save", "on")...)
	require.Equal(t, 303, w.Code, w.Body)
	require.Equal(t, "/ui/schedules/default/new-one", w.Header().Get("Location"))
	require.Equal(t, `PUT /schedules/new-one?tenant=default {"catchUp":"none","every":"15m","overlap":"skip","job":`+
		`{"callbackUrl":"https://example.com/\u003cx\u003e","jobType":"SEND_EMAIL","maxAttempts":3,"tags":["a","b"],"payload":{"n": 1.50}}}`, p.api.sent[1])

	taken := p.post("/ui/schedules/new", "jobType", "SEND_EMAIL", "name", "digest", "every", "1h")
	require.Equal(t, 422, taken.Code)
	require.Contains(t, taken.Body.String(), `id="name-mistake">is the name of a schedule`)
	require.Len(t, p.api.sent, 2)
}

func TestAScheduleIsEdited(t *testing.T) {
	p := newPages(editableAnswers())
	edit := p.get("/ui/schedules/default/digest/edit")
	requireGolden(t, "schedule-edit", edit)
	require.Contains(t, edit.Body.String(), "1.50", "to the letter")
	require.Equal(t, 303, p.post("/ui/schedules/default/digest/edit", "jobType", "SEND_EMAIL", "cron", "@daily", "json", "{}").Code)
	require.Equal(t, []string{`PUT /schedules/digest?tenant=default {"cron":"@daily","job":{"jobType":"SEND_EMAIL","payload":{}}}`}, p.api.sent)

	require.Equal(t, 403, p.get("/ui/schedules/acme/daily%2F%3Cb%3E/edit").Code, "a configuration sets it")
	require.Contains(t, p.get("/ui/schedules/acme/daily%2F%3Cb%3E").Body.String(), `disabled title="A configuration sets it: change it there.">Edit`)
	require.Equal(t, 403, p.post("/ui/schedules/default/sweep/edit", "jobType", "SWEEP", "json", "{}").Code, "its job is not shown")
	require.Len(t, p.api.sent, 1)
}

func TestTheMistakesOfAScheduleAreAtTheirFields(t *testing.T) {
	answers := editableAnswers()
	answers["PUT /schedules/digest"] = v1.Invalid(
		v1.Mistake{Location: "#/cron", Message: "has 3 fields"}, v1.Mistake{Location: "#/job/priority", Message: "must be a whole number"},
		v1.Mistake{Location: "#/job/payload/to", Message: "is required"}, v1.Mistake{Location: "#/job/callbackUrl", Message: "must be https"},
	)
	w := newPages(answers).post("/ui/schedules/default/digest/edit", "jobType", "SEND_EMAIL", "cron", "1 2 3", "priority", "high", "sto", "")
	require.Equal(t, 422, w.Code)
	for _, at := range []string{`id="cron-mistake">has 3 fields`, `id="priority-mistake">must be a whole number`, `-mistake">is required`, `id="other-mistake">callbackUrl: must be https`, `value="1 2 3"`} {
		require.Contains(t, w.Body.String(), at)
	}
	p := newPages(editableAnswers())
	w = p.post("/ui/schedules/default/digest/edit", "jobType", "SEND_EMAIL", "json", "{", "other", "[1]")
	require.Equal(t, 422, w.Code)
	require.Contains(t, w.Body.String(), `id="other-mistake">is not a JSON object`)
	require.Empty(t, p.api.sent)
	answers["POST /schedules/preview"] = v1.Invalid(v1.Mistake{Location: "#/zone", Message: "is not known"})
	w = newPages(answers).post("/ui/schedules/default/digest/edit", "jobType", "SEND_EMAIL", "zone", "Mars", "preview", "on")
	require.Contains(t, w.Body.String(), `id="zone-mistake">is not known`)
	require.Contains(t, newPages(answers).post("/ui/schedules/default/digest/edit", "jobType", "SEND_EMAIL", "edit", "json").Body.String(), `name="json"`)
}
