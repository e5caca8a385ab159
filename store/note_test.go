package store

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func note(t testing.TB, s *Store, batch ...job.Report) []job.Lease {
	t.Helper()
	lost, err := s.SaveProgress(t.Context(), batch)
	require.NoError(t, err)
	return lost
}

func TestReportsKeepWhatTheyDoNotChange(t *testing.T) {
	s := open(t)
	c := running(t, s)
	saved := func() string {
		return ask[string](t, s, "select concat_ws(' ', progress, checkpoint) from jobs where job_id = $1", postgres.UUID(c.JobID))
	}
	require.Empty(t, note(t, s, job.Report{Lease: c.Lease, Progress: json.RawMessage(`{"a":1}`)}))
	require.Equal(t, `{"a":1}`, saved())
	require.Empty(t, note(t, s, job.Report{Lease: c.Lease, Checkpoint: json.RawMessage(`[2]`)}))
	require.Equal(t, `{"a":1} [2]`, saved())
	require.Empty(t, note(t, s, job.Report{Lease: c.Lease}))
	require.Equal(t, `{"a":1} [2]`, saved())
	require.Equal(t, `{"a":1}`, string(get(t, s, c.JobID).Progress))
	requireState(t, s, c.JobID, job.Running)
}

func TestReportsOfAStrangerAreLost(t *testing.T) {
	s := open(t)
	held, finished, taken := running(t, s), running(t, s), running(t, s)
	settled(t, s, finished, job.Success)
	expire(t, s, taken.Lease)
	current := reap(t, s, 1)[0].Lease
	before := []string{row(t, s, finished.JobID)}

	say := func(lease job.Lease, text string) job.Report {
		return job.Report{Lease: lease, Progress: json.RawMessage(text)}
	}
	lost := note(t, s, say(held.Lease, `"held"`), say(finished.Lease, `"finished"`), say(taken.Lease, `"stale"`), say(current, `"current"`))
	require.ElementsMatch(t, []job.Lease{finished.Lease, taken.Lease}, lost)
	require.Equal(t, `"held"`, string(get(t, s, held.JobID).Progress))
	require.Equal(t, `"current"`, string(get(t, s, taken.JobID).Progress))
	require.Equal(t, before, []string{row(t, s, finished.JobID)})
	require.Empty(t, note(t, s))
}

func TestAReportAfterATakeoverIsLost(t *testing.T) {
	s := open(t)
	c := running(t, s)
	expire(t, s, c.Lease)
	commit := locked(t, s, sql.Text("reap"), 10, postgres.Interval(aMinute))
	wait := after(func() []job.Lease {
		lost, err := s.SaveProgress(context.Background(), []job.Report{{Lease: c.Lease, Checkpoint: json.RawMessage(`1`)}})
		if err != nil {
			t.Error(err)
		}
		return lost
	})
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.Lease{c.Lease}, wait())
	require.True(t, ask[bool](t, s, "select checkpoint is null from jobs"))
}

func TestAReportThatCannotBeStoredIsBadDataAndWritesNothing(t *testing.T) {
	s := open(t)
	good, bad := running(t, s), running(t, s)
	for _, text := range []string{`{`, "\"\x00\"", "\"\xff\""} {
		_, err := s.SaveProgress(t.Context(), []job.Report{
			{Lease: good.Lease, Progress: json.RawMessage(`1`)},
			{Lease: bad.Lease, Checkpoint: json.RawMessage(text)},
		})
		require.ErrorIs(t, err, job.ErrBadData)
	}
	require.Nil(t, get(t, s, good.JobID).Progress)
}
