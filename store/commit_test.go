package store

import (
	"encoding/json"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func fast(s *job.Submission) { s.Fast = true }

// watched returns a store on a server that is durable by default, and a function that
// returns the values of synchronous_commit under which a job was inserted.
func watched(t *testing.T) (s *Store, inForce func(job.ID) string) {
	t.Helper()
	address, err := url.Parse(pgtest.URL(t))
	require.NoError(t, err)
	query := address.Query()
	query.Set("synchronous_commit", "on") // the tests' own server has it off
	address.RawQuery = query.Encode()
	s = openAt(t, address.String())
	exec(t, s, "create table commits (job_id uuid, setting text)")
	exec(t, s, `create function watch_commit() returns trigger language plpgsql as $$
		begin
			insert into commits values (new.job_id, current_setting('synchronous_commit'));
			return null;
		end $$`)
	exec(t, s, "create trigger watch_commit after insert or update on jobs for each row execute function watch_commit()")
	return s, func(id job.ID) string {
		return ask[string](t, s, "select string_agg(distinct setting, ' ') from commits where job_id = $1", postgres.UUID(id))
	}
}

func TestOnlyTheCommitOfFastSubmissionsAloneDoesNotWaitForTheDisk(t *testing.T) {
	verbs := map[string]func(*testing.T, *Store, ...job.Submission){
		"one by one": func(t *testing.T, s *Store, batch ...job.Submission) {
			t.Helper()
			submit(t, s, batch...)
		},
		"all or none": func(t *testing.T, s *Store, batch ...job.Submission) {
			t.Helper()
			for _, done := range submitAll(t, s, batch...) {
				require.NoError(t, done.Err)
			}
		},
	}
	s, inForce := watched(t)
	for name, verb := range verbs {
		t.Run(name, func(t *testing.T) {
			for range 3 { // on connections that have also done the other kind
				for _, c := range []struct {
					want  string
					batch []job.Submission
				}{
					{"off", []job.Submission{submission(t, fast), submission(t, fast), submission(t, fast, keyed(name))}},
					{"off", []job.Submission{submission(t, fast), submission(t, fast)}},
					{"on", []job.Submission{submission(t), submission(t)}},
				} {
					verb(t, s, c.batch...)
					for _, one := range c.batch[:2] {
						require.Equal(t, c.want, inForce(one.ID))
					}
				}
				mixed := []job.Submission{submission(t, fast), submission(t), submission(t, fast)}
				verb(t, s, mixed...)
				for _, one := range mixed {
					require.Equal(t, "on", inForce(one.ID), "in a group that waits")
				}
			}
		})
	}
	requireSound(t, s)
}

func TestTransitionsAfterAFastSubmissionWaitForTheDisk(t *testing.T) {
	s, inForce := watched(t)
	given(t, s, fast)
	exec(t, s, "delete from commits")
	settled(t, s, claim(t, s, 1)[0], job.Success)
	require.Equal(t, "on", ask[string](t, s, "select string_agg(distinct setting, ' ') from commits"))
	require.Equal(t, "on", ask[string](t, s, "show synchronous_commit"))
	require.Equal(t, "off", inForce(given(t, s, fast)))
}

func TestAFastSubmissionThatCannotBeStoredFailsAlone(t *testing.T) {
	s, inForce := watched(t)
	batch := []job.Submission{
		submission(t, fast), submission(t, fast), submission(t, fast, func(j *job.Submission) { j.Payload = json.RawMessage(`{"n": `) }),
	}
	done := s.Submit(t.Context(), batch)
	require.ErrorIs(t, done[2].Err, job.ErrBadData)
	for i, one := range batch[:2] {
		require.NoError(t, done[i].Err)
		require.Equal(t, "off", inForce(one.ID))
	}
	require.Equal(t, 2, jobs(t, s))
}

func TestAFastSubmissionIsStoredOnceWhateverIsLost(t *testing.T) {
	p, s, direct := behindProxy(t)
	submit(t, s, submission(t, fast)) // statements are prepared
	for name, lose := range map[string]*atomic.Int32{"answer": &p.LoseAnswers, "request": &p.LoseRequests} {
		t.Run(name, func(t *testing.T) {
			before := jobs(t, direct)
			batch := []job.Submission{submission(t, fast), submission(t, fast, keyed(name)), submission(t, fast)}
			lose.Store(1)
			for i, done := range s.Submit(t.Context(), batch) {
				require.NoError(t, done.Err)
				require.Equal(t, batch[i].ID, done.Receipt.ID)
				require.False(t, done.Receipt.Replayed)
			}
			require.Zero(t, lose.Load(), "it was lost")
			require.Equal(t, before+len(batch), jobs(t, direct))
		})
	}
	requireSound(t, direct)
}
