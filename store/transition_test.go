package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// The transition table exists in package job and in the ledger's triggers. The test
// compares them pair by pair, each on its own ledger row. A running job is queued in
// the ledger until its attempt ends, which a higher fence shows.
func TestTheDatabaseAllowsTheTransitionsThatTheProgramKnowsAndNoOthers(t *testing.T) {
	s := open(t)
	for _, from := range stored {
		for _, to := range job.States() {
			for _, attempts := range []int{0, 1} {
				t.Run(fmt.Sprintf("%s to %s by %d attempts", from, to, attempts), func(t *testing.T) {
					id := bare(t, s, from)
					_, err := s.db.Worker.Exec(t.Context(), `update jobs set state = $2::text::job_state, fence = fence + $4,
						finished_at = case when $3 then now() end where job_id = $1`, postgres.UUID(id), string(to), to.Final(), attempts)
					ran := from == job.Queued && attempts == 1 && job.Running.CanBecome(to)
					if to != job.Running && (from == to || from.CanBecome(to) || ran) {
						require.NoError(t, err)
						require.Equal(t, to, get(t, s, id).State)
						return
					}
					require.ErrorContains(t, err, "illegal job transition: "+string(from)+" to "+string(to))
					require.ErrorIs(t, postgres.Translate("move", err), job.ErrBadData)
					require.Equal(t, from, get(t, s, id).State)
				})
			}
		}
	}
}

// stored are the states that ledger rows can have.
var stored = slices.DeleteFunc(job.States(), func(s job.State) bool { return s == job.Running })

func TestNoJobHasTwoLeases(t *testing.T) {
	s := open(t)
	running(t, s)
	_, err := s.db.Worker.Exec(t.Context(), `insert into leases (job_id, lease_id, fence, worker_id, claimed_at, expires_at)
		select job_id, gen_random_uuid(), fence + 1, worker_id, now(), expires_at from leases`)
	require.ErrorContains(t, err, "leases_pkey")
}

func TestAJobIsBornCreatedOrQueued(t *testing.T) {
	s := open(t)
	for _, state := range job.States() {
		_, err := s.db.Worker.Exec(t.Context(), birth, postgres.UUID(newID(t)), string(state), state.Final())
		if state == job.Created || state == job.Queued {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "illegal job transition: nothing to "+string(state))
	}
}

func TestOnlyAFinishedJobHasAnEndTime(t *testing.T) {
	s := open(t)
	for _, state := range stored {
		id := bare(t, s, state)
		_, err := s.db.Worker.Exec(t.Context(), `update jobs set finished_at = case when finished_at is null then now() end where job_id = $1`, postgres.UUID(id))
		require.ErrorContains(t, err, "finished_when_final", state)
	}
}

func TestAJobThatWaitsForAClaimHasAnAttemptLeft(t *testing.T) {
	s := open(t)
	for _, state := range stored {
		id := bare(t, s, state)
		_, err := s.db.Worker.Exec(t.Context(), `update jobs set attempt = max_attempts where job_id = $1`, postgres.UUID(id))
		if state == job.Created || state == job.Queued || state == job.Retry {
			require.ErrorContains(t, err, "attempts_within_limit", state)
		} else {
			require.NoError(t, err, state)
		}
		_, err = s.db.Worker.Exec(t.Context(), `update jobs set attempt = max_attempts + 1 where job_id = $1`, postgres.UUID(id))
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

// bare inserts a ledger row in the state, without a list row.
func bare(t testing.TB, s *Store, state job.State) job.ID {
	t.Helper()
	ways := map[job.State][]job.State{
		job.Created: {job.Created}, job.Queued: {job.Queued},
		job.Retry:     {job.Queued, job.Retry},
		job.Succeeded: {job.Queued, job.Succeeded},
		job.Dead:      {job.Queued, job.Dead},
		job.Canceled:  {job.Queued, job.Canceled},
	}
	id := newID(t)
	exec(t, s, birth, postgres.UUID(id), string(ways[state][0]), false)
	for _, next := range ways[state][1:] {
		exec(t, s, "update jobs set state = $2::text::job_state, fence = fence + 1, finished_at = case when $3 then now() end where job_id = $1",
			postgres.UUID(id), string(next), next.Final())
	}
	return id
}
