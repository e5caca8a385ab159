package api

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnswersAreWhatTheEncoderWrites(t *testing.T) {
	at := time.Date(2026, time.February, 3, 4, 5, 6, 789_012_000, time.UTC)
	accepted := func(change func(*v1.Accepted)) *v1.Accepted {
		a := v1.AcceptedOf(job.Receipt{ID: job.ID{1, 2, 3, 15: 0xff}, Type: "SEND_EMAIL", State: job.Queued, CreatedAt: at, UpdatedAt: at.Add(time.Hour)})
		change(&a)
		return &a
	}
	for name, result := range map[string]v1.BatchResult{
		"a job":             {Index: 12345, Job: accepted(func(*v1.Accepted) {})},
		"a duplicate":       {Job: accepted(func(a *v1.Accepted) { a.Duplicate, a.Status = true, job.Running.Status() })},
		"whole seconds":     {Job: accepted(func(a *v1.Accepted) { a.CreatedAt = at.Truncate(time.Second) })},
		"a zone":            {Job: accepted(func(a *v1.Accepted) { a.CreatedAt = at.In(time.FixedZone("", 3600)) })},
		"for HTML":          {Job: accepted(func(a *v1.Accepted) { a.JobType = "<a&b>~ " })},
		"a quote":           {Job: accepted(func(a *v1.Accepted) { a.JobType = `a"b` })},
		"a backslash":       {Job: accepted(func(a *v1.Accepted) { a.JobType = `a\b` })},
		"a control":         {Job: accepted(func(a *v1.Accepted) { a.JobType = "a\x1fb" })},
		"a delete":          {Job: accepted(func(a *v1.Accepted) { a.JobType = "a\x7fb" })},
		"beyond ASCII":      {Job: accepted(func(a *v1.Accepted) { a.JobType = "größe\u2028" })},
		"no UTF-8":          {Job: accepted(func(a *v1.Accepted) { a.JobType = "a\xffb" })},
		"a problem":         {Index: 1, Problem: problem(422, "no")},
		"a job and problem": {Index: 1, Job: accepted(func(*v1.Accepted) {}), Problem: problem(422, "no")},
		"neither":           {Index: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got bytes.Buffer
			require.NoError(t, newEncoder(&want).Encode(result))
			require.NoError(t, newAnswers(&got).result(&result))
			require.Equal(t, want.String(), got.String())
		})
	}
}

// A member that is new must be written by appendAccepted, too.
func TestAnswersHaveAllMembers(t *testing.T) {
	members := func(of any) (names []string) {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			names = append(names, field.Name)
		}
		return names
	}
	require.Equal(t, []string{"JobID", "JobType", "Status", "CreatedAt", "UpdatedAt", "Duplicate"}, members(v1.Accepted{}))
	require.Equal(t, []string{"Index", "Job", "Problem"}, members(v1.BatchResult{}))
}

func BenchmarkAnswer(b *testing.B) {
	accepted := v1.AcceptedOf(job.Receipt{ID: job.ID{1}, Type: "SEND_EMAIL", State: job.Queued, CreatedAt: time.Now(), UpdatedAt: time.Now()})
	result := v1.BatchResult{Index: 123, Job: &accepted}
	var out bytes.Buffer
	b.Run("answers", func(b *testing.B) {
		a := newAnswers(&out)
		for b.Loop() {
			out.Reset()
			_ = a.result(&result)
		}
	})
	b.Run("encoder", func(b *testing.B) {
		e := newEncoder(&out)
		for b.Loop() {
			out.Reset()
			_ = e.Encode(&result)
		}
	})
}
