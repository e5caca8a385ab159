package store

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// parent is a success of the claimed job with follow-ups.
func parent(t testing.TB, c job.Claimed, n int, changes ...func(*job.Submission)) job.Settlement {
	t.Helper()
	success := as(c, job.Success)
	success.FollowUps = submissions(t, n, append(changes, func(s *job.Submission) { s.Parent = c.JobID })...)
	return success
}

// settleParents settles, and fails the test on an error.
func settleParents(t testing.TB, s *Store, batch ...job.Settlement) ([]job.SettleResult, [][]job.Submitted) {
	t.Helper()
	results, submitted, err := s.SettleWithFollowUps(t.Context(), batch)
	require.NoError(t, err)
	return results, submitted
}

// children are how many jobs the job has submitted.
func children(t testing.TB, s *Store, c job.Claimed) int {
	t.Helper()
	return ask[int](t, s, "select count(*) from jobs where parent_id = $1", postgres.UUID(c.JobID))
}

// claims returns running jobs.
func claims(t testing.TB, s *Store, n int) []job.Claimed {
	t.Helper()
	submit(t, s, submissions(t, n)...)
	return claim(t, s, n)
}

func TestFollowUpsBecomeRealWithTheSuccess(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settlement := parent(t, c, 3)
	settlement.Result = json.RawMessage(`{"n": 3}`)
	results, submitted := settleParents(t, s, settlement)
	require.Equal(t, []job.SettleResult{job.Settled}, results)
	requireState(t, s, c.JobID, job.Succeeded)
	require.Equal(t, `{"n": 3}`, string(get(t, s, c.JobID).Result))
	require.Equal(t, 3, children(t, s, c))
	for i, one := range submitted[0] {
		require.NoError(t, one.Err)
		require.Equal(t, settlement.FollowUps[i].ID, one.Receipt.ID)
		require.Equal(t, job.Queued, one.Receipt.State)
	}
	require.Len(t, claim(t, s, 10), 3, "they are on the ready list")
	require.Equal(t, 3, ask[int](t, s, "select sum(jobs) from tallies where event = 'submitted' and slot is not null")-1)
}

// Everything that a submission can ask for works for follow-ups, too.
func TestFollowUpsAreSubmittedLikeOtherJobs(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		change func(*job.Submission)
		state  job.State
		list   string
	}{
		"delayed":   {func(j *job.Submission) { j.Delay = time.Hour }, job.Created, "timers"},
		"scheduled": {func(j *job.Submission) { j.RunAt = time.Now().Add(time.Hour) }, job.Created, "timers"},
		"held":      {func(j *job.Submission) { j.Hold = true }, job.Created, "timers"},
		"expires":   {func(j *job.Submission) { j.TTL = time.Hour }, job.Queued, "expiries"},
		"gated": {func(j *job.Submission) {
			j.Terms, j.Gates = job.Terms{ConcurrencyKey: "k"}, []job.Gate{job.Gate("key:default/k")}
		}, job.Queued, "parked"},
		"plain": {func(*job.Submission) {}, job.Queued, "ready"},
	} {
		t.Run(name, func(t *testing.T) {
			ancestor := running(t, s)
			settlement := parent(t, ancestor, 2, c.change)
			_, submitted := settleParents(t, s, settlement)
			for i, one := range submitted[0] {
				require.Equal(t, c.state, one.Receipt.State)
				require.Equal(t, 1, ask[int](t, s, "select count(*) from "+c.list+" where job_id = $1", postgres.UUID(settlement.FollowUps[i].ID)))
			}
			exec(t, s, "delete from ready")
			exec(t, s, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
		})
	}
}

func TestWithoutALeaseThereAreNoFollowUps(t *testing.T) {
	s := open(t)
	lost, held := running(t, s), running(t, s)
	expire(t, s, lost.Lease)
	require.Len(t, reap(t, s, 1), 1)
	batch := []job.Settlement{parent(t, lost, 3, uniqueFor("a", time.Hour)), parent(t, held, 3)}
	results, submitted := settleParents(t, s, batch...)
	require.Equal(t, []job.SettleResult{job.Lost, job.Settled}, results)
	require.Nil(t, submitted[0])
	require.Zero(t, children(t, s, lost))
	require.Equal(t, 3, children(t, s, held))
	require.Zero(t, ask[int](t, s, "select count(*) from unique_keys"), "nor does it keep others out")
}

// As after an answer that was lost: the lease id says that the success is in the ledger.
func TestASuccessThatIsSentAgainHasOneSetOfFollowUps(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settlement := parent(t, c, 3, func(j *job.Submission) { j.IdempotencyKey = j.ID.String() })
	settleParents(t, s, settlement)
	results, submitted := settleParents(t, s, settlement)
	require.Equal(t, []job.SettleResult{job.Settled}, results)
	require.Nil(t, submitted[0])
	require.Equal(t, 3, children(t, s, c))
}

func TestSettlersThatRaceMakeOneSetOfFollowUps(t *testing.T) {
	s := open(t)
	for range 30 {
		c := claims(t, s, 5)
		barrier := make(chan struct{})
		var racers sync.WaitGroup
		for range 4 { // each makes follow-ups of its own, as two workers would
			batch := make([]job.Settlement, len(c))
			for i := range c {
				batch[i] = parent(t, c[i], 3)
			}
			racers.Go(func() {
				<-barrier
				results, _, err := s.SettleWithFollowUps(t.Context(), batch)
				if err != nil || len(results) != len(batch) {
					t.Errorf("%v %v", results, err)
				}
			})
		}
		close(barrier)
		racers.Wait()
		for i := range c {
			require.Equal(t, 3, children(t, s, c[i]))
			requireState(t, s, c[i].JobID, job.Succeeded)
		}
		exec(t, s, "delete from ready")
		exec(t, s, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
	}
}

func TestASettleWithFollowUpsBehindAReaperMakesNone(t *testing.T) {
	s := open(t)
	c := running(t, s)
	settlement := parent(t, c, 3)
	commit := locked(t, s, "delete from leases")
	wait := after(func() []job.SettleResult { results, _ := settleParents(t, s, settlement); return results })
	awaitBlocked(t, s, 1)
	commit()
	require.Equal(t, []job.SettleResult{job.Lost}, wait())
	require.Zero(t, children(t, s, c))
}

func TestAFollowUpWhoseKeyIsKnownIsFound(t *testing.T) {
	s := open(t)
	keyed := func(j *job.Submission) { j.IdempotencyKey = "k" }
	known := submitOne(t, s, keyed)
	c := claims(t, s, 2)
	results, submitted := settleParents(t, s, parent(t, c[0], 2, keyed), parent(t, c[1], 1))
	require.Equal(t, []job.SettleResult{job.Settled, job.Settled}, results)
	for _, one := range submitted[0] {
		require.Equal(t, known.ID, one.Receipt.ID)
		require.True(t, one.Receipt.Replayed)
	}
	require.Equal(t, 0, children(t, s, c[0]))
	require.Equal(t, 1, children(t, s, c[1]))
}

func TestAFollowUpWithTheKeyOfAnotherJobIsRefusedWithItsSuccessAlone(t *testing.T) {
	s := open(t)
	keyed := func(payload string) func(*job.Submission) {
		return func(j *job.Submission) { j.IdempotencyKey, j.Payload = "k", []byte(payload) }
	}
	submitOne(t, s, keyed(`1`))
	c := claims(t, s, 4)
	batch := []job.Settlement{parent(t, c[0], 3), parent(t, c[1], 1, keyed(`2`)), parent(t, c[2], 1), parent(t, c[3], 1, keyed(`1`))}
	batch[1].FollowUps = append(submissions(t, 2, func(j *job.Submission) { j.Parent = c[1].JobID }), batch[1].FollowUps...)
	results, submitted := settleParents(t, s, batch...)
	require.Equal(t, []job.SettleResult{job.Settled, job.Refused, job.Settled, job.Settled}, results)
	require.ErrorIs(t, submitted[1][2].Err, job.ErrKeyReused)
	require.NoError(t, submitted[1][0].Err)
	require.Equal(t, []int{3, 0, 1, 0}, []int{children(t, s, c[0]), children(t, s, c[1]), children(t, s, c[2]), children(t, s, c[3])})
	requireState(t, s, c[1].JobID, job.Running)
	settled(t, s, c[1], job.PermanentFailure)
}

func TestFollowUpsOfOneAttemptWithTheSameKeyAreOneJob(t *testing.T) {
	s := open(t)
	c := claims(t, s, 2)
	same := func(j *job.Submission) { j.IdempotencyKey = "k" }
	results, _ := settleParents(t, s, parent(t, c[0], 2, same), parent(t, c[1], 2, same))
	require.Equal(t, []job.SettleResult{job.Settled, job.Settled}, results)
	require.Equal(t, 1, children(t, s, c[0])+children(t, s, c[1]))
}

// A job that submits its own successor: it has ended when the successor is made.
func TestAFollowUpMayBeUniqueLikeTheJobThatSubmitsIt(t *testing.T) {
	s := open(t)
	submitOne(t, s, whileOpen("poll"), func(j *job.Submission) { j.IdempotencyKey = "first" })
	c := claim(t, s, 1)[0]
	_, submitted := settleParents(t, s, parent(t, c, 2, whileOpen("poll")))
	require.False(t, submitted[0][0].Receipt.Duplicate)
	require.True(t, submitted[0][1].Receipt.Duplicate, "of the first")
	require.Equal(t, 1, children(t, s, c))
	next := claim(t, s, 1)[0]
	_, submitted = settleParents(t, s, parent(t, next, 1, func(j *job.Submission) { j.IdempotencyKey, j.Payload = "first", []byte(`{"n":1}`) }))
	require.True(t, submitted[0][0].Receipt.Replayed, "its first ancestor has the key")
}

func TestFollowUpsThatCannotBeStoredAreRefusedWithTheirSuccess(t *testing.T) {
	s := open(t)
	c := claims(t, s, 5)
	var batch []job.Settlement
	for _, one := range c {
		batch = append(batch, parent(t, one, 2))
	}
	batch[3].FollowUps[1].Payload = []byte(`{`)
	results, _ := settleParents(t, s, batch...)
	require.Equal(t, []job.SettleResult{job.Settled, job.Settled, job.Settled, job.Refused, job.Settled}, results)
	require.Zero(t, children(t, s, c[3]))
	require.Equal(t, 8, ask[int](t, s, "select count(*) from jobs where parent_id is not null"))
}

func TestManyFollowUpsAreDividedAmongTransactions(t *testing.T) {
	s := open(t)
	c := claims(t, s, 5)
	var batch []job.Settlement
	for _, one := range c {
		batch = append(batch, parent(t, one, 1000))
	}
	indexes := []int{0, 1, 2, 3, 4}
	require.Equal(t, 2, fitting(batch, indexes))
	batch[0].FollowUps[0].Payload = []byte(`"` + string(make([]byte, insertBytes)) + `"`)
	require.Equal(t, 1, fitting(batch, indexes), "at least one")
	batch[0].FollowUps[0].Payload = []byte(`1`)
	results, _ := settleParents(t, s, batch...)
	for i := range c {
		require.Equal(t, job.Settled, results[i])
		require.Equal(t, 1000, children(t, s, c[i]))
	}
}

func TestAFollowedJobIsToldOfWithItsFollowUps(t *testing.T) {
	s := open(t)
	submitOne(t, s, func(j *job.Submission) { j.Followed = true })
	c := claim(t, s, 1)[0]
	settleParents(t, s, parent(t, c, 1))
	require.Equal(t, 1, ask[int](t, s, "select count(*) from ends"))
}

// The connection is cut before and after each step of the transaction. Then the same worker
// tries again, or it is gone: a reaper takes its lease, and the next attempt submits anew.
func TestThereIsOneSetOfFollowUpsWhereverTheConnectionIsCut(t *testing.T) {
	p, s, direct := behindProxy(t)
	settleParents(t, s, parent(t, claims(t, s, 1)[0], 1, whileOpen("warm"))) // statements are prepared
	for name, fault := range map[string]struct{ spare, lose *atomic.Int32 }{
		"request": {&p.SpareRequests, &p.LoseRequests}, "answer": {&p.SpareAnswers, &p.LoseAnswers},
	} {
		for _, survives := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the worker survives: %t", name, survives), func(t *testing.T) {
				cuts := 0
				for hit := true; hit; cuts++ {
					exec(t, direct, "delete from ready")
					exec(t, direct, "update jobs set state = 'canceled', finished_at = now() where state = 'queued'")
					c := claims(t, direct, 1)[0]
					settlement := parent(t, c, 3, func(j *job.Submission) {
						j.IdempotencyKey = j.ID.String()
						whileOpen(j.ID.String())(j)
					})
					fault.spare.Store(int32(cuts))
					fault.lose.Store(1)
					_, _, err := s.SettleWithFollowUps(t.Context(), []job.Settlement{settlement})
					hit = fault.lose.Swap(0) == 0
					fault.spare.Store(0)
					require.Equal(t, hit, err != nil)
					if survives && err != nil {
						require.Eventually(t, func() bool {
							results, _, err := s.SettleWithFollowUps(t.Context(), []job.Settlement{settlement})
							return err == nil && results[0] == job.Settled
						}, patience, time.Millisecond)
					}
					if succeeded := get(t, direct, c.JobID).State == job.Succeeded; succeeded {
						require.Equal(t, 3, children(t, direct, c))
						continue
					}
					require.False(t, survives)
					require.Zero(t, children(t, direct, c))
					expire(t, direct, c.Lease)
					c.Lease = reap(t, direct, 1)[0].Lease
					settleParents(t, direct, parent(t, c, 3))
					require.Equal(t, 3, children(t, direct, c))
				}
				require.Greater(t, cuts, 5)
			})
		}
	}
	requireSound(t, direct)
}
