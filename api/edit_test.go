package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnEditIsReadAsAMergePatch(t *testing.T) {
	for body, want := range map[string]job.Edit{
		`{"priority": -3}`:                        {Priority: new(int16(-3))},
		`{"priority": null, "tags": ["a", "b"]}`:  {Priority: new(int16(0)), Tags: []string{"a", "b"}},
		`{"tags": []}`:                            {Tags: []string{}},
		`{"tags": null}`:                          {Tags: []string{}},
		`{"runAt": "now"}`:                        {Delay: new(time.Duration(0))},
		`{"delay": "1h30m"}`:                      {Delay: new(90 * time.Minute)},
		`{"runAt": "2030-01-31T12:00:00+01:00"}`:  {RunAt: time.Date(2030, 1, 31, 12, 0, 0, 0, time.FixedZone("", 3600))},
		`{"priority": 32767, "delay": "87600h"} `: {Priority: new(int16(32767)), Delay: new(87600 * time.Hour)},
	} {
		l := newLedger()
		jobIn(job.Queued)(l)
		require.Equal(t, 200, send(newAPI(t, l), "PATCH", known, body).Code, body)
		require.Len(t, l.edits, 1)
		require.True(t, want.RunAt.Equal(l.edits[0].RunAt))
		l.edits[0].RunAt = want.RunAt
		require.Equal(t, want, l.edits[0], body)
	}
}

func TestAnEditOfManyJobsGoesOnWhereItStopped(t *testing.T) {
	l := newLedger()
	for n := range 5 {
		l.jobs[job.ID{15: byte(n + 1)}] = job.View{ID: job.ID{15: byte(n + 1)}, State: job.Queued}
	}
	h := newAPI(t, l)
	const filters = "?jobType=A&tenant=acme&tag=x&state=retry&state=created&createdFrom=2026-01-01T00:00:00Z&createdBefore=2026-02-01T00:00:00Z&limit=2"
	var counts []int
	query := filters
	for range 3 {
		var said v1.Edited
		answer := send(h, "PATCH", "/jobs"+query, `{"priority": 1}`)
		require.Equal(t, 200, answer.Code, answer.Body)
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &said))
		counts = append(counts, said.Count)
		query = filters + "&cursor=" + said.NextCursor
	}
	require.Equal(t, []int{2, 2, 1}, counts)
	require.Equal(t, job.Filter{
		States: []job.State{job.Created, job.Retry}, Type: "A", Tenant: "acme", Tag: "x", Limit: 2, After: l.filter.After,
		CreatedFrom: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), CreatedBefore: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	}, l.filter)
	require.Len(t, l.edits, 3)

	require.Equal(t, 200, send(h, "PATCH", "/jobs?tag=x&dryRun=true", `{"priority": 1}`).Code)
	require.Len(t, l.edits, 3, "a dry run changes nothing")
	require.Equal(t, []job.State{job.Created, job.Queued, job.Retry}, l.filter.States)
}
