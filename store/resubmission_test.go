package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestAResubmissionAndItsOriginalKnowEachOther(t *testing.T) {
	s := open(t)
	original := dead(t, s)
	require.Empty(t, detail(t, s, original).Resubmissions)
	again := func(j *job.Submission) { j.ResubmissionOf = original }
	var newest []job.ID
	for range job.MaxResubmissions + 2 {
		newest = append([]job.ID{given(t, s, again)}, newest...)
	}
	given(t, s)
	require.Equal(t, newest[:job.MaxResubmissions], detail(t, s, original).Resubmissions)
	require.Zero(t, detail(t, s, original).ResubmissionOf)
	keyed := given(t, s, again, func(j *job.Submission) { j.IdempotencyKey = "key" })
	require.Equal(t, original, detail(t, s, keyed).ResubmissionOf)
	require.Empty(t, detail(t, s, keyed).Resubmissions)
	requireSound(t, s)
}

func TestEitherEndOfAResubmissionCanGo(t *testing.T) {
	s := open(t)
	original := dead(t, s)
	again := given(t, s, func(j *job.Submission) { j.ResubmissionOf = original })
	_, err := s.Erase(t.Context(), original, "me", "")
	require.NoError(t, err)
	require.Equal(t, original, detail(t, s, again).ResubmissionOf)
	require.Equal(t, []job.ID{again}, detail(t, s, original).Resubmissions)
	_, err = s.Cancel(t.Context(), again)
	require.NoError(t, err)
	_, err = s.Erase(t.Context(), again, "me", "")
	require.NoError(t, err)
	require.Equal(t, original, detail(t, s, again).ResubmissionOf)

	exec(t, s, "delete from unsuccessful_attempts where job_id = $1", postgres.UUID(original))
	exec(t, s, "delete from dead_letters where job_id = $1", postgres.UUID(original))
	exec(t, s, "delete from jobs where job_id = $1", postgres.UUID(original))
	require.Equal(t, original, detail(t, s, again).ResubmissionOf, "its id stays")
	exec(t, s, "delete from jobs where job_id = $1", postgres.UUID(again))
	requireSound(t, s)
}

func TestTheDetailNamesTheWorkflow(t *testing.T) {
	s := open(t)
	w := job.WorkflowSubmission{ID: newID(t), Tenant: job.DefaultTenant, Jobs: []job.WorkflowStep{{Submission: submission(t), Name: "a", OnDeath: job.OnDeathWait}}}
	_, err := s.SubmitWorkflow(t.Context(), w)
	require.NoError(t, err)
	require.Equal(t, w.ID, detail(t, s, w.Jobs[0].ID).Workflow)
	require.Zero(t, detail(t, s, given(t, s)).Workflow)
}
