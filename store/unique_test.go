package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// whileOpen makes a submission unique by a name for as long as its job waits or runs.
func whileOpen(name string) func(*job.Submission) {
	return func(s *job.Submission) { s.Unique = &job.Unique{WhileOpen: true, Digest: sha256.Sum256([]byte(name))} }
}

// uniqueFor makes a submission unique by a name for a time.
func uniqueFor(name string, period time.Duration) func(*job.Submission) {
	return func(s *job.Submission) { s.Unique = &job.Unique{For: period, Digest: sha256.Sum256([]byte(name))} }
}

// submitOne returns the receipt of a submission, which must not be refused.
func submitOne(t testing.TB, s *Store, changes ...func(*job.Submission)) job.Receipt {
	t.Helper()
	done := s.Submit(t.Context(), []job.Submission{submission(t, changes...)})[0]
	require.NoError(t, done.Err)
	return done.Receipt
}

func TestAUniqueJobKeepsOthersOutUntilItHasEnded(t *testing.T) {
	s := open(t)
	ends := map[string]func(c job.Claimed){
		"succeeded": func(c job.Claimed) { settled(t, s, c, job.Success) },
		"dead":      func(c job.Claimed) { settled(t, s, c, job.PermanentFailure) },
		"canceled":  func(c job.Claimed) { settled(t, s, c, job.CancelConfirmed) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			first := submitOne(t, s, whileOpen(name))
			require.False(t, first.Duplicate)
			keptOut := func(state job.State) {
				t.Helper()
				again := submitOne(t, s, whileOpen(name), func(j *job.Submission) { j.Payload = []byte(`2`) })
				require.Equal(t, job.Receipt{
					ID: first.ID, Type: jobType, State: state, CreatedAt: first.CreatedAt, UpdatedAt: again.UpdatedAt, Duplicate: true,
				}, again)
			}
			keptOut(job.Queued)
			s.marks = newLowWaterMarks()
			c := claim(t, s, 1)[0]
			keptOut(job.Running)
			settled(t, s, c, job.Failure)
			keptOut(job.Retry)
			promote(t, s, 10)
			s.marks = newLowWaterMarks()
			end(claim(t, s, 1)[0])

			next := submitOne(t, s, whileOpen(name))
			require.False(t, next.Duplicate)
			require.NotEqual(t, first.ID, next.ID)
			require.True(t, submitOne(t, s, whileOpen(name)).Duplicate)
			require.False(t, submitOne(t, s, whileOpen("another")).Duplicate)
			exec(t, s, "delete from unique_keys")
			exec(t, s, "delete from ready; delete from jobs; delete from dead_letters; delete from unsuccessful_attempts")
		})
	}
}

func TestAUniqueJobKeepsOthersOutForAPeriod(t *testing.T) {
	s := open(t)
	first := submitOne(t, s, uniqueFor("a", time.Hour))
	_, err := s.Cancel(t.Context(), first.ID)
	require.NoError(t, err)
	for _, mode := range []func(*job.Submission){uniqueFor("a", time.Hour), whileOpen("a")} {
		again := submitOne(t, s, mode)
		require.True(t, again.Duplicate)
		require.Equal(t, first.ID, again.ID)
		require.Equal(t, job.Canceled, again.State, "whatever has become of the job")
	}
	require.True(t, ask[bool](t, s, "select expires_at = $1::timestamptz + interval '1 hour' from unique_keys", first.CreatedAt))
	exec(t, s, "update unique_keys set expires_at = now()")
	next := submitOne(t, s, whileOpen("a"))
	require.False(t, next.Duplicate)
	require.True(t, submitOne(t, s, uniqueFor("a", time.Hour)).Duplicate)
}

func TestOfUniqueJobsOfABatchTheFirstIsMade(t *testing.T) {
	s := open(t)
	for name, store := range bothWays(s) {
		t.Run(name, func(t *testing.T) {
			batch := make([]job.Submission, 6)
			for i := range batch {
				batch[i] = submission(t, whileOpen(fmt.Sprint(name, i%2)), keyed(fmt.Sprint(name, 9-i)))
			}
			results := store(t, batch)
			for i, result := range results {
				require.NoError(t, result.Err)
				require.Equal(t, batch[i%2].ID, result.Receipt.ID)
				require.Equal(t, i > 1, result.Receipt.Duplicate)
				require.Equal(t, job.Queued, result.Receipt.State)
			}
			requireSound(t, s)
		})
	}
	require.Equal(t, 4, ask[int](t, s, "select count(*) from jobs"))
}

// bothWays store a batch, each job by itself or all of them together.
func bothWays(s *Store) map[string]func(testing.TB, []job.Submission) []job.Submitted {
	return map[string]func(testing.TB, []job.Submission) []job.Submitted{
		"each": func(t testing.TB, batch []job.Submission) []job.Submitted { return s.Submit(t.Context(), batch) },
		"all": func(t testing.TB, batch []job.Submission) []job.Submitted {
			results, err := s.SubmitAll(t.Context(), batch)
			require.NoError(t, err)
			return results
		},
	}
}

func TestAnIdempotencyKeyCountsBeforeUniqueness(t *testing.T) {
	s := open(t)
	for name, store := range bothWays(s) {
		t.Run(name, func(t *testing.T) {
			first := submitOne(t, s, whileOpen(name), keyed(name+"k"))
			holder := submitOne(t, s, whileOpen(name+"other"))
			replays := []job.Submission{
				submission(t, whileOpen(name), keyed(name+"k")),
				submission(t, whileOpen(name+"other"), keyed(name+"k")),
				submission(t, whileOpen(name+"free"), keyed(name+"k")),
			}
			for _, one := range replays {
				again := store(t, []job.Submission{one})[0]
				require.NoError(t, again.Err)
				require.Equal(t, first.ID, again.Receipt.ID)
				require.True(t, again.Receipt.Replayed)
				require.False(t, again.Receipt.Duplicate)
			}
			require.False(t, submitOne(t, s, whileOpen(name+"free")).Duplicate, "a replay keeps nobody out")

			out := store(t, []job.Submission{submission(t, whileOpen(name+"other"), keyed(name+"new"))})[0].Receipt
			require.Equal(t, holder.ID, out.ID)
			require.True(t, out.Duplicate)
			_, err := s.Cancel(t.Context(), holder.ID)
			require.NoError(t, err)
			made := store(t, []job.Submission{submission(t, whileOpen(name+"other"), keyed(name+"new"))})[0].Receipt
			require.False(t, made.Duplicate || made.Replayed, "a submission that was kept out has not used up its key")
			reused := s.Submit(t.Context(), []job.Submission{
				submission(t, whileOpen(name+"other"), keyed(name+"new"), func(j *job.Submission) { j.Payload = []byte(`3`) }),
			})
			require.ErrorIs(t, reused[0].Err, job.ErrKeyReused)
		})
	}
}

// Another transaction makes a job with the key after this one has looked for it, and
// before this one inserts.
func TestADigestIsGivenUpIfAnotherJobGetsTheKeyAfterAll(t *testing.T) {
	for _, way := range []string{"each", "all"} {
		t.Run(way, func(t *testing.T) {
			s := open(t)
			first := submission(t, keyed("k"))
			in := newInsertion(newBatch([]job.Submission{first}).entries, []int{0})
			commit := locked(t, s, sql.Text(in.statement()), in.columns()...)
			store := bothWays(s)[way]
			wait := after(func() []job.Submitted {
				return store(t, []job.Submission{submission(t, whileOpen("a"), keyed("k")), submission(t, whileOpen("a"))})
			})
			awaitBlocked(t, s, 1)
			commit()
			results := wait()
			require.NoError(t, results[0].Err)
			require.Equal(t, first.ID, results[0].Receipt.ID)
			require.True(t, results[0].Receipt.Replayed)
			require.NoError(t, results[1].Err)
			require.False(t, results[1].Receipt.Duplicate, "the first was no job, so this one was")
			require.Equal(t, 2, ask[int](t, s, "select count(*) from jobs"))
			require.Equal(t, 1, ask[int](t, s, "select count(*) from unique_keys"))
			requireSound(t, s)
		})
	}
}

func TestAUniqueSubmissionThatIsSentAgainIsNoDuplicateOfItself(t *testing.T) {
	s := open(t)
	for name, store := range bothWays(s) {
		t.Run(name, func(t *testing.T) {
			one := submission(t, whileOpen(name))
			first := store(t, []job.Submission{one})[0]
			again := store(t, []job.Submission{one, submission(t, whileOpen(name))})
			require.Equal(t, first.Receipt.ID, again[0].Receipt.ID)
			require.False(t, again[0].Receipt.Duplicate)
			require.True(t, again[1].Receipt.Duplicate)
			_, err := s.Cancel(t.Context(), one.ID)
			require.NoError(t, err)
			other := store(t, []job.Submission{submission(t, whileOpen(name))})[0].Receipt
			require.False(t, other.Duplicate)
			last := store(t, []job.Submission{one})[0].Receipt
			require.Equal(t, one.ID, last.ID, "its job has ended, and another has its place")
			require.False(t, last.Duplicate)
			require.Equal(t, [16]byte(other.ID), ask[[16]byte](t, s, "select job_id from unique_keys where digest = $1", one.Unique.Digest[:]))
		})
	}
}

func TestAUniqueSubmissionWhoseCommitIsNotAnsweredIsStoredOnce(t *testing.T) {
	p, s, direct := behindProxy(t)
	for fault, lose := range map[string]*atomic.Int32{
		"commit": &p.LoseCommits, "answer": &p.LoseAnswers, "request": &p.LoseRequests,
	} {
		for name, store := range bothWays(s) {
			t.Run(fault+" "+name, func(t *testing.T) {
				before := jobs(t, direct)
				name := t.Name()
				holder := submitOne(t, direct, whileOpen(name+"taken"))
				batch := []job.Submission{
					submission(t, whileOpen(name)), submission(t, whileOpen(name)), submission(t, whileOpen(name+"taken")), submission(t),
				}
				lose.Store(1)
				results := store(t, batch)
				for i, id := range []job.ID{batch[0].ID, batch[0].ID, holder.ID, batch[3].ID} {
					require.NoError(t, results[i].Err)
					require.Equal(t, id, results[i].Receipt.ID)
					require.Equal(t, id != batch[i].ID, results[i].Receipt.Duplicate)
				}
				require.Equal(t, before+3, jobs(t, direct))
			})
		}
	}
}

func TestARefusedBatchKeepsNobodyOut(t *testing.T) {
	s := open(t)
	submitOne(t, s, keyed("k"))
	results, err := s.SubmitAll(t.Context(), []job.Submission{
		submission(t, whileOpen("a")), submission(t, keyed("k"), func(j *job.Submission) { j.Payload = []byte(`2`) }),
	})
	require.NoError(t, err)
	require.ErrorIs(t, results[1].Err, job.ErrKeyReused)
	require.False(t, submitOne(t, s, whileOpen("a")).Duplicate)

	each := s.Submit(t.Context(), []job.Submission{
		submission(t, whileOpen("b"), func(j *job.Submission) { j.Payload = []byte(`{`) }), submission(t, whileOpen("b")),
	})
	require.ErrorIs(t, each[0].Err, job.ErrBadData)
	require.NoError(t, each[1].Err)
	require.False(t, each[1].Receipt.Duplicate)
}

func TestADeadJobKeepsNobodyOutAndCanBeRequeuedBesideAnother(t *testing.T) {
	s := open(t)
	deadOne := func(name string) job.ID {
		c := running(t, s, whileOpen(name))
		settled(t, s, c, job.PermanentFailure)
		return c.JobID
	}
	first := deadOne("a")
	_, err := s.Requeue(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, first, submitOne(t, s, whileOpen("a")).ID, "it keeps others out again")
	_, err = s.Cancel(t.Context(), first)
	require.NoError(t, err)

	second := deadOne("b")
	other := submitOne(t, s, whileOpen("b"))
	require.False(t, other.Duplicate)
	_, err = s.Requeue(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, other.ID, submitOne(t, s, whileOpen("b")).ID)
}

// Batches of all kinds, with the same digests and idempotency keys in different orders.
func TestUniqueJobsStayUniqueHoweverManySubmitThem(t *testing.T) {
	s := open(t)
	const submitters, rounds, names = 8, 12, 6
	var mu sync.Mutex
	made := make(map[job.ID]bool)
	var group sync.WaitGroup
	for i := range submitters {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range rounds {
				batch := make([]job.Submission, 1+random.IntN(5))
				for n := range batch {
					batch[n] = submission(t)
					name := fmt.Sprint("n", random.IntN(names))
					switch random.IntN(5) {
					case 0:
						keyed(fmt.Sprint("k", random.IntN(names)))(&batch[n])
					case 1:
						uniqueFor(name, time.Hour)(&batch[n])
						keyed(fmt.Sprint("k", random.IntN(names)))(&batch[n])
					case 2:
						uniqueFor("for "+name, time.Hour)(&batch[n])
					case 3:
						whileOpen(name)(&batch[n])
					}
				}
				var results []job.Submitted
				if random.IntN(2) == 0 {
					results = s.Submit(context.Background(), batch)
				} else {
					var err error
					if results, err = s.SubmitAll(context.Background(), batch); err != nil {
						t.Error(err)
						continue
					}
				}
				for n, result := range results {
					if result.Err != nil {
						t.Error(result.Err)
					}
					if result.Receipt.Duplicate == (result.Receipt.ID == batch[n].ID) && batch[n].IdempotencyKey == "" {
						t.Errorf("%+v for %s", result, batch[n].ID)
					}
					if result.Receipt.ID == batch[n].ID {
						mu.Lock()
						made[batch[n].ID] = true
						mu.Unlock()
					}
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, len(made), ask[int](t, s, "select count(*) from jobs"))
	require.Zero(t, ask[int](t, s, "select count(*) from unique_keys u where not exists (select from jobs j where j.job_id = u.job_id)"))
	require.LessOrEqual(t, ask[int](t, s, "select count(*) from unique_keys"), 2*names)
	requireSound(t, s)
}

// Jobs end and are submitted again at the same time, so that digests change hands.
func TestADigestThatChangesHandsIsHeldByOneOpenJob(t *testing.T) {
	s := open(t)
	const submitters, rounds = 6, 25
	var group sync.WaitGroup
	for range submitters {
		group.Go(func() {
			for range rounds {
				done := s.Submit(context.Background(), []job.Submission{submission(t, whileOpen("a"))})[0]
				if done.Err != nil {
					t.Error(done.Err)
					return
				}
				if done.Receipt.Duplicate {
					continue
				}
				var open int
				err := s.db.Worker.QueryRow(context.Background(), "select count(*) from jobs where state = 'queued'").Scan(&open)
				if err != nil || open != 1 {
					t.Errorf("%d open jobs: %v", open, err)
				}
				if _, err := s.Cancel(context.Background(), done.Receipt.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.Greater(t, ask[int](t, s, "select count(*) from jobs"), 1)
}

func TestDigestsThatKeepNobodyOutAreDeleted(t *testing.T) {
	s := open(t)
	for i := range 6 {
		submitOne(t, s, whileOpen(fmt.Sprint("open", i)))
		c, err := s.Cancel(t.Context(), submitOne(t, s, whileOpen(fmt.Sprint("ended", i))).ID)
		require.NoError(t, err)
		require.True(t, c.Canceled)
		over := submission(t, uniqueFor(fmt.Sprint("over", i), time.Hour))
		submit(t, s, over, submission(t, uniqueFor(fmt.Sprint("period", i), time.Hour)))
		exec(t, s, "update unique_keys set expires_at = now() where digest = $1", over.Unique.Digest[:])
	}
	s.marks = newLowWaterMarks()
	exec(t, s, "delete from ready where job_id not in (select job_id from ready order by run_at limit 1)")
	deadOne := claim(t, s, 1)[0]
	settled(t, s, deadOne, job.PermanentFailure)

	commit := locked(t, s, "select pg_advisory_xact_lock(4653013)")
	next, deleted, err := s.TidyUnique(t.Context(), nil, 100)
	require.NoError(t, err)
	require.Nil(t, next)
	require.Zero(t, deleted, "another process is at it")
	commit()

	total, rounds := 0, 0
	for rounds == 0 || next != nil {
		next, deleted, err = s.TidyUnique(t.Context(), next, 5)
		require.NoError(t, err)
		total, rounds = total+deleted, rounds+1
	}
	require.Equal(t, 12, total)
	require.GreaterOrEqual(t, rounds, 3)
	require.Equal(t, 12, ask[int](t, s, "select count(*) from unique_keys"))
	require.True(t, ask[bool](t, s, "select exists (select from unique_keys where job_id = $1)", postgres.UUID(deadOne.JobID)), "it may be requeued")
}
