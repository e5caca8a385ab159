package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// Jobs that wait are found by their lists, however many jobs have ended since.
func TestTheFirstPageHasTheFewJobsThatWaitAmongManyThatHaveEnded(t *testing.T) {
	s := open(t)
	var waiting []job.ID
	for i := range 5 {
		waiting = append(waiting, given(t, s, func(j *job.Submission) { j.ID = job.ID{15: byte(9 - i)} }))
	}
	fill(t, s, job.Succeeded, maxScan+10, "DONE")
	for _, filter := range []job.Filter{
		{States: []job.State{job.Queued}}, {States: []job.State{job.Created, job.Queued, job.Retry}}, {States: []job.State{job.Queued}, Type: jobType},
	} {
		filter.Limit = 100
		page, err := s.List(t.Context(), filter)
		require.NoError(t, err)
		found := make([]job.ID, len(page.Jobs))
		for i, view := range page.Jobs {
			found[i] = view.ID
		}
		require.Equal(t, waiting, found)
		require.Zero(t, page.Next)
		count, err := s.Count(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, job.Count{Jobs: 5}, count)
		text, _ := listing(filter, foundColumns, maxScan)
		require.NotRegexp(t, `Seq Scan on (jobs|ready|timers|parked)\b`, explainSQL(t, s, text, sql.Text("list_by_index")))
	}
}

// If more jobs wait than one page reads, the ledger is read instead, page after page.
func TestManyJobsThatWaitAreListedPageByPage(t *testing.T) {
	s := open(t)
	oldest := given(t, s, func(j *job.Submission) { j.ID, j.Tags = job.ID{15: 1}, []string{"rare"} })
	fill(t, s, job.Queued, maxScan+1, "COMMON")
	found, pages := listed(t, s, job.Filter{States: []job.State{job.Queued}, Tag: "rare", Limit: 10})
	require.Equal(t, []job.ID{oldest}, found)
	require.Equal(t, 2, pages)
	for _, filter := range []job.Filter{{}, {States: []job.State{job.Queued}}, {Type: "COMMON"}} {
		count, err := s.Count(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, job.Count{Jobs: job.MaxCount, More: true}, count)
	}
}

func TestJobsAreFoundByWhatOnlyOperatorsKnow(t *testing.T) {
	s := open(t)
	c := running(t, s)
	failed := running(t, s)
	settled(t, s, failed, job.PermanentFailure)
	held := given(t, s, func(j *job.Submission) { j.Hold = true })
	scheduled := given(t, s, func(j *job.Submission) { j.Delay = aMinute; j.Payload = []byte(`{"to":"anna"}`) })
	for name, want := range map[string]struct {
		filter job.Filter
		found  []job.ID
	}{
		"held":       {job.Filter{States: []job.State{job.Created}, WithoutScheduled: true}, []job.ID{held}},
		"scheduled":  {job.Filter{States: []job.State{job.Created}, WithoutHeld: true}, []job.ID{scheduled}},
		"a worker":   {job.Filter{Worker: worker}, []job.ID{failed.JobID, c.JobID}},
		"no worker":  {job.Filter{Worker: "nobody"}, nil},
		"an error":   {job.Filter{Code: "E1"}, []job.ID{failed.JobID}},
		"no error":   {job.Filter{Code: "E2"}, nil},
		"a death":    {job.Filter{States: []job.State{job.Dead}, Code: "E1"}, []job.ID{failed.JobID}},
		"no death":   {job.Filter{States: []job.State{job.Dead}, Code: "E2"}, nil},
		"a payload":  {job.Filter{Payload: `"anna"`}, []job.ID{scheduled}},
		"no payload": {job.Filter{Payload: "%anna"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want.filter.Limit = 10
			found, _ := listed(t, s, want.filter)
			require.Equal(t, want.found, found)
			count, err := s.Count(t.Context(), want.filter)
			require.NoError(t, err)
			require.Equal(t, job.Count{Jobs: len(want.found)}, count)
		})
	}
}

// Reading the ledger as well would take a hundred times as long beside millions of jobs.
func TestDeadJobsAreFoundByTheirDeadLetters(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settled(t, s, c, job.PermanentFailure)
	filter := job.Filter{States: []job.State{job.Dead}, Type: jobType, Tenant: job.DefaultTenant, Code: "E1"}
	for _, fingerprint := range []string{"still to be filled in", "filled in"} {
		if fingerprint == "filled in" {
			_, err := s.Fingerprint(t.Context(), 10)
			require.NoError(t, err)
		} else {
			exec(t, s, "update dead_letters set fingerprint = '', error_code = ''")
		}
		count, err := s.Count(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, job.Count{Jobs: 1}, count, fingerprint)
	}
	filter.Code = ""
	text, _ := counting(filter, job.MaxCount, maxScan)
	require.NotRegexp(t, ` on jobs\b`, explainSQL(t, s, text, sql.Text("list_by_index")))
	filter.Tag = "x"
	text, _ = counting(filter, job.MaxCount, maxScan)
	require.Regexp(t, ` on jobs\b`, explainSQL(t, s, text, sql.Text("list_by_index")))
}
