package store

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func TestAMissingJobIsNotFound(t *testing.T) {
	s := open(t)
	_, err := s.Get(t.Context(), newID(t))
	require.ErrorIs(t, err, job.ErrNotFound)
	_, err = s.Detail(t.Context(), newID(t))
	require.ErrorIs(t, err, job.ErrNotFound)
}

func TestAViewShowsWhatTheLedgerHas(t *testing.T) {
	s := open(t)
	id := given(t, s, func(j *job.Submission) { j.Tenant = "acme" })
	view := get(t, s, id)
	require.Equal(t, job.View{
		ID: id, Type: jobType, Tenant: "acme", State: job.Queued,
		CreatedAt: view.CreatedAt, UpdatedAt: view.CreatedAt,
	}, view)
	require.InDelta(t, 0, time.Since(view.CreatedAt), float64(time.Hour))
}

func TestOnlyJobsInAFinalStateHaveEnded(t *testing.T) {
	s := open(t)
	var all, final []job.ID
	for _, state := range job.States() {
		id := inState(t, s, state)
		all = append(all, id)
		if state.Final() {
			final = append(final, id)
		}
	}
	views, err := s.Ended(t.Context(), append(all, newID(t)))
	require.NoError(t, err)
	var ended []job.ID
	for _, view := range views {
		ended = append(ended, view.ID)
		require.Equal(t, get(t, s, view.ID), view)
	}
	require.ElementsMatch(t, final, ended)
}

func TestEveryEndedAttemptHasARow(t *testing.T) {
	s := open(t)
	c := running(t, s)
	kinds := []job.OutcomeKind{job.Failure, job.Timeout, job.Released, job.Crash, job.Success}
	for _, kind := range kinds {
		settled(t, s, c, kind)
		if kind == job.Success {
			break
		}
		promote(t, s, 10)
		s.marks = newLowWaterMarks()
		c = claim(t, s, 1)[0]
	}
	attempts := detail(t, s, c.JobID).Attempts
	require.Len(t, attempts, len(kinds))
	numbers := []int{1, 2, 3, 3, 4} // a released attempt is not charged
	for i, a := range attempts {
		require.Equal(t, kinds[i], a.Outcome)
		require.Equal(t, int64(i+1), a.Fence)
		require.Equal(t, numbers[i], a.Number)
		if i > 0 {
			require.False(t, a.ClaimedAt.Before(attempts[i-1].EndedAt))
		}
	}
}

func TestDeadLettersAreListedNewestFirst(t *testing.T) {
	s := open(t)
	var ids []job.ID
	for range 3 {
		ids = append(ids, dead(t, s))
	}
	letters, err := s.DeadLetters(t.Context(), job.DeadLetterFilter{Limit: 2})
	require.NoError(t, err)
	require.Len(t, letters, 2)
	require.Equal(t, job.DeadLetter{
		ID: ids[2], Type: jobType, Tenant: job.DefaultTenant, DeadAt: letters[0].DeadAt, Attempts: 1, LastError: "it broke",
		Code: "E1", Fingerprint: job.Fingerprint("E1", "it broke"),
	}, letters[0])
	require.Equal(t, ids[1], letters[1].ID)
	require.False(t, letters[1].DeadAt.After(letters[0].DeadAt))
}

func TestTheAuditComparesAllThatListsRepeat(t *testing.T) {
	for _, c := range []struct {
		state       job.State
		list, harms string
	}{
		{job.Queued, "ready", "job_type = job_type || 'X', urgency = urgency + 1, attempt = attempt + 1, run_at = run_at - interval '1 second'"},
		{job.Created, "timers", "state = 'retry', job_type = job_type || 'X', attempt = attempt + 1, run_at = now()"},
		{job.Retry, "timers", "state = 'created', job_type = job_type || 'X', attempt = attempt + 1, run_at = 'infinity'"},
		{job.Running, "leases", "fence = fence + 1"},
		{job.Dead, "dead_letters", "job_type = job_type || 'X', tenant = tenant || 'X', dead_at = dead_at - interval '1 second'"},
	} {
		for _, harm := range regexp.MustCompile(`(\w+) = [^,]+`).FindAllStringSubmatch(c.harms, -1) {
			t.Run(fmt.Sprintf("%s %s", c.state, harm[1]), func(t *testing.T) {
				s := open(t)
				id := inState(t, s, c.state)
				requireSound(t, s)
				exec(t, s, "update "+c.list+" set "+harm[0])
				found, err := audit(t.Context(), s, 10)
				require.NoError(t, err)
				require.Equal(t, []disagreement{{ID: id, State: string(c.state), List: c.list, Differs: harm[1]}}, found)
			})
		}
	}
}

func TestTheAuditFindsWhateverDisagrees(t *testing.T) {
	s := open(t)
	queued, waiting := given(t, s), given(t, s, func(j *job.Submission) { j.Hold = true })
	gone := newID(t)
	both := claimFresh(t, s).JobID
	succeeded := inState(t, s, job.Succeeded)
	requireSound(t, s)

	exec(t, s, "delete from ready where job_id = $1", postgres.UUID(queued))
	exec(t, s, "delete from timers where job_id = $1", postgres.UUID(waiting))
	exec(t, s, "insert into dead_letters values ($1, now()), ($2, now()), ($3, now()), ($4, now())",
		postgres.UUID(waiting), postgres.UUID(gone), postgres.UUID(both), postgres.UUID(succeeded))
	found, err := audit(t.Context(), s, 100)
	require.NoError(t, err)
	require.ElementsMatch(t, []disagreement{
		{ID: queued, State: "queued", List: "none"},
		{ID: waiting, State: "created", List: "dead_letters"},
		{ID: gone, State: "absent", List: "dead_letters"},
		{ID: both, State: "running", List: "dead_letters"},
		{ID: succeeded, State: "succeeded", List: "dead_letters", Differs: "dead_at"},
	}, found)
	found, err = audit(t.Context(), s, 2)
	require.NoError(t, err)
	require.Len(t, found, 2)
}
