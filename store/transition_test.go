package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The transition table stands twice: in package job and in the triggers of the
// ledger. The two are compared pair by pair, on a ledger row of its own each.
func TestTheDatabaseAllowsTheTransitionsThatTheProgramKnowsAndNoOthers(t *testing.T) {
	s := open(t)
	for _, from := range job.States() {
		for _, to := range job.States() {
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				id := bare(t, s, from)
				_, err := s.work.Exec(t.Context(), `update jobs set state = $2::text::job_state,
					finished_at = case when $3 then now() end where job_id = $1`, uuid(id), string(to), to.Final())
				if from == to || from.CanBecome(to) {
					require.NoError(t, err)
					require.Equal(t, to, get(t, s, id).State)
					return
				}
				require.ErrorContains(t, err, "illegal job transition: "+string(from)+" to "+string(to))
				require.ErrorIs(t, translate("move", err), job.ErrBadData)
				require.Equal(t, from, get(t, s, id).State)
			})
		}
	}
}

func TestAJobIsBornCreatedOrQueued(t *testing.T) {
	s := open(t)
	for _, state := range job.States() {
		_, err := s.work.Exec(t.Context(), birth, uuid(newID(t)), string(state), state.Final())
		if state == job.Created || state == job.Queued {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "illegal job transition: nothing to "+string(state))
	}
}

func TestAFinishedJobHasATimeAndNoOtherHas(t *testing.T) {
	s := open(t)
	for _, state := range job.States() {
		id := bare(t, s, state)
		_, err := s.work.Exec(t.Context(), `update jobs set finished_at = case when finished_at is null then now() end where job_id = $1`, uuid(id))
		require.ErrorContains(t, err, "finished_when_final", state)
	}
}

func TestWhatWaitsForAClaimHasAnAttemptLeft(t *testing.T) {
	s := open(t)
	for _, state := range job.States() {
		id := bare(t, s, state)
		_, err := s.work.Exec(t.Context(), `update jobs set attempt = max_attempts where job_id = $1`, uuid(id))
		if state == job.Created || state == job.Queued || state == job.Retry {
			require.ErrorContains(t, err, "attempts_within_limit", state)
		} else {
			require.NoError(t, err, state)
		}
		_, err = s.work.Exec(t.Context(), `update jobs set attempt = max_attempts + 1 where job_id = $1`, uuid(id))
		require.ErrorContains(t, err, "attempts_within_limit", state)
	}
}

func TestTheDatabasesEnumsAreTheProgramsWords(t *testing.T) {
	s := open(t)
	labels := func(enum string) []string {
		return ask[[]string](t, s, "select enum_range(null::"+enum+")::text[]")
	}
	require.Equal(t, words(job.States()), labels("job_state"))
	require.Equal(t, words(job.OutcomeKinds()), labels("attempt_outcome"))
}

func words[T ~string](list []T) []string {
	all := make([]string, len(list))
	for i, word := range list {
		all[i] = string(word)
	}
	return all
}

const birth = `insert into jobs (job_id, tenant, job_type, priority, request_hash, payload, tags, trace_parent,
	trace_state, max_attempts, timeout, run_at, state, finished_at)
	values ($1, 'default', 'BARE', 0, '', '{}', '{}', '', '', 4, '30 seconds', now(),
		$2::text::job_state, case when $3 then now() end)`

// bare makes a ledger row in the state, without the lists.
func bare(t testing.TB, s *Store, state job.State) job.ID {
	t.Helper()
	ways := map[job.State][]job.State{
		job.Created: {job.Created}, job.Queued: {job.Queued},
		job.Running:   {job.Queued, job.Running},
		job.Retry:     {job.Queued, job.Running, job.Retry},
		job.Succeeded: {job.Queued, job.Running, job.Succeeded},
		job.Dead:      {job.Queued, job.Running, job.Dead},
		job.Canceled:  {job.Queued, job.Canceled},
	}
	id := newID(t)
	exec(t, s, birth, uuid(id), string(ways[state][0]), false)
	for _, next := range ways[state][1:] {
		exec(t, s, "update jobs set state = $2::text::job_state, finished_at = case when $3 then now() end where job_id = $1",
			uuid(id), string(next), next.Final())
	}
	return id
}
