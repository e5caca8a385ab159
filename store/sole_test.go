package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func ofType(kind string, priority int16) func(*job.Submission) {
	return func(j *job.Submission) { j.Type, j.Priority = kind, priority }
}

// A claim that believes one type to have all jobs sees it when another type has some again.
func TestATypeThatHadAllJobsDoesNotHideThoseOfOthers(t *testing.T) {
	s := open(t)
	types := []string{jobType, "OTHER", "EMPTY"}
	taken := func(limit int) (ids []job.ID) {
		claimed, err := s.Claim(t.Context(), worker, types, limit, aMinute)
		require.NoError(t, err)
		for _, c := range claimed {
			ids = append(ids, c.JobID)
		}
		return ids
	}
	believed := func() string { return s.soles.among(types, time.Now().Add(time.Hour)) }

	first := submit(t, s, submissions(t, 5, ofType(jobType, 0))...)
	require.Equal(t, first[:2], taken(2))
	require.Equal(t, jobType, believed())
	require.Equal(t, first[2:3], taken(1))
	urgent := given(t, s, ofType("OTHER", 9))
	require.Equal(t, []job.ID{urgent, first[3]}, taken(2))
	require.Empty(t, believed())

	require.Equal(t, first[4:], taken(1))
	require.Equal(t, jobType, believed())
	later := given(t, s, ofType("OTHER", 0))
	require.Equal(t, []job.ID{later}, taken(2))
	require.Empty(t, believed(), "it had fewer than were asked for")
	require.Empty(t, taken(2))
	requireSound(t, s)
}

// While one type has the most urgent jobs and another waits behind it, the belief would be wrong
// at each claim.
func TestATypeIsNotBelievedAgainAtOnce(t *testing.T) {
	s := newSoleTypes()
	now := time.Now()
	types, ofA := []string{"A", "B"}, []job.Claimed{{Type: "A"}}
	s.claimed(types, ofA, 1)
	require.Equal(t, "A", s.among(types, now))
	s.wrong("A", now)
	s.claimed(types, ofA, 1)
	require.Empty(t, s.among(types, now.Add(doubtFor-1)))
	require.Equal(t, "A", s.among(types, now.Add(doubtFor)))
}

func TestTheTypeThatHasAllJobsIsKnownForEachPlugin(t *testing.T) {
	s := newSoleTypes()
	now := time.Now()
	ofA, ofC := []job.Claimed{{Type: "A"}}, []job.Claimed{{Type: "C"}}
	s.claimed([]string{"A", "B"}, ofA, 1)
	s.claimed([]string{"C", "D"}, ofC, 1)
	require.Equal(t, "A", s.among([]string{"A", "B"}, now))
	require.Equal(t, "C", s.among([]string{"C", "D"}, now))
	require.Empty(t, s.among([]string{"A", "B", "C", "D"}, now), "both cannot have all")
	s.claimed([]string{"A"}, nil, 1)
	require.Equal(t, "A", s.among([]string{"A", "B"}, now), "a claim for one type says nothing of the others")
	s.claimed([]string{"A", "B"}, append(ofA, job.Claimed{Type: "B"}), 2)
	s.claimed([]string{"C", "D"}, ofC, 2)
	require.Empty(t, s.among([]string{"A", "B"}, now), "two types had some")
	require.Empty(t, s.among([]string{"C", "D"}, now), "there were no more")
}

// Neither a claim that finds its belief wrong nor one that finds it right locks what it does not
// claim, whatever the urgencies.
func TestAClaimForATypeThatHasAllJobsLocksOnlyWhatItClaims(t *testing.T) {
	s := open(t)
	fill(t, s, job.Queued, 90, jobType) // of three urgencies
	types := []string{jobType, "OTHER"}
	for _, want := range []int{40, 0} {
		tx, err := s.db.Worker.Begin(t.Context())
		require.NoError(t, err)
		claimed, err := tx.Exec(t.Context(), sql.Text("claim"), claimArguments(upTo(40, jobType, s.marks.ranges(types)), worker, 40, aMinute)...)
		require.NoError(t, err)
		require.EqualValues(t, want, claimed.RowsAffected())
		all := ask[int](t, s, "select count(*) from ready")
		require.Equal(t, all-want, ask[int](t, s, "select count(*) from (select from ready for update skip locked) unlocked"))
		require.NoError(t, tx.Rollback(t.Context()))
		given(t, s, ofType("OTHER", 0))
	}
}
