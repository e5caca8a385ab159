package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestClaimsAskForNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	const concurrency, jobs = 5, 60
	db := fresh(t)
	many(t, db, jobs, ofType("A"))
	many(t, db, jobs, ofType("B"))
	s := supervise(t, playing("wide", 100, succeeds, "A"), playing("narrow", 2, succeeds, "B"))
	var mu sync.Mutex
	most := make(map[string]int)
	ledger := &hooked{Store: db, claim: func(types []string, limit int) {
		mu.Lock()
		defer mu.Unlock()
		most[types[0]] = max(most[types[0]], limit)
	}}
	launch(t, ledger, s, func(c *runtime.Config) { c.Concurrency = concurrency })
	awaitAll(t, db, 2*jobs, job.Succeeded)
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, most["A"], concurrency)
	require.LessOrEqual(t, most["B"], 2)
	for _, h := range s.plugins {
		require.LessOrEqual(t, h.mostBusy, min(h.slots, concurrency), h.name)
	}
}

func TestABusyPluginCausesNoClaimsForAnIdleOne(t *testing.T) {
	t.Parallel()
	const jobs = 200
	db := fresh(t)
	many(t, db, jobs, ofType("BUSY"))
	s := supervise(t, playing("busy", 1, succeeds, "BUSY"), playing("idle", 10, succeeds, "IDLE"))
	var mu sync.Mutex
	claims := make(map[string]int)
	ledger := &hooked{Store: db, claim: func(types []string, _ int) {
		mu.Lock()
		defer mu.Unlock()
		claims[types[0]]++
	}}
	launch(t, ledger, s, polling(aLongTime))
	awaitAll(t, db, jobs, job.Succeeded)
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, claims["BUSY"], jobs)
	// Once at the start, and when hints are listened for.
	require.LessOrEqual(t, claims["IDLE"], 3)
}

func TestAnIdleWorkerClaimsOnlyOnceAPoll(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	claims := make(chan struct{}, 100)
	ledger := &hooked{Store: db, claim: func([]string, int) { claims <- struct{}{} }}
	s := supervise(t, playing("p", 10, succeeds, echo))
	began := time.Now()
	const poll = 200 * time.Millisecond
	launch(t, ledger, s, polling(poll))
	for range 6 {
		awaitSignal(t, claims, "a claim")
	}
	// Two without a wait, as above, and the others a poll apart, less jitter.
	require.GreaterOrEqual(t, time.Since(began), 3*poll)
}

func TestAJobWaitsForAPluginThatCannotTakeItYet(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	ids := many(t, db, 3)
	s := supervise(t, playing("p", 5, succeeds, echo))
	s.refused = 2
	launch(t, db, s)
	awaitAll(t, db, len(ids), job.Succeeded)
	for _, id := range ids {
		require.Equal(t, []job.OutcomeKind{job.Success}, outcomes(t, db, id))
	}
	requireSettled(t, db)
}

func TestAPluginThatComesUpLaterIsServed(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	id := given(t, db)
	s := supervise(t)
	p := launch(t, db, s, polling(aLongTime))
	s.mu.Lock()
	s.plugins = slices.Clone(append(s.plugins, playing("late", 1, succeeds, echo)))
	s.mu.Unlock()
	s.changed <- struct{}{}
	awaitState(t, db, id, job.Succeeded)
	await(t, func() bool {
		spec, err := p.TypeSpec(t.Context(), echo)
		return err == nil && spec.Plugin == "late"
	}, "and what it declares becomes known")
}

// While the database is slow to take down what has ended, no more is claimed;
// afterwards nothing but the settlements tells the claimer that there is room.
func TestClaimsContinueOnceEndedAttemptsAreSettled(t *testing.T) {
	t.Parallel()
	const concurrency, unsettled = 1, 752 // twice the concurrency and one batch
	db := fresh(t)
	many(t, db, unsettled+10)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	ledger := &hooked{Store: db, settle: func([]job.Settlement) { <-gate }}
	s := supervise(t, playing("p", 10, succeeds, echo))
	launch(t, ledger, s, polling(aLongTime), func(c *runtime.Config) { c.Concurrency = concurrency })
	awaitAll(t, db, unsettled, job.Running)
	open()
	awaitAll(t, db, unsettled+10, job.Succeeded)
	requireSettled(t, db)
}

// Of two types, one worker's claim holds the last job of the first under lock:
// the other's claim comes back short although there is more of the second.
func TestAShortClaimIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	given(t, db, func(s *job.Submission) { s.Type, s.Priority = "A", 1 })
	many(t, db, 2, ofType("B"))
	locked, err := db.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = locked.Rollback(context.Background()) })
	_, err = locked.Exec(t.Context(), "select from ready where job_type = 'A' for update")
	require.NoError(t, err)
	s := supervise(t, playing("p", 2, succeeds, "A", "B"))
	launch(t, &hooked{Store: db, listen: func() error { return errors.New("deaf") }}, s, polling(aLongTime))
	awaitAll(t, db, 2, job.Succeeded)
}

// Jobs that come one by one are claimed with their own type alone, wherever they were submitted.
func TestAHintAboutATypeCausesNoClaimsForOthers(t *testing.T) {
	t.Parallel()
	const jobs = 20
	db := fresh(t)
	var mu sync.Mutex
	claims := make(map[string]int)
	ledger := &hooked{Store: db, claim: func(types []string, _ int) {
		mu.Lock()
		defer mu.Unlock()
		claims[strings.Join(types, "+")]++
	}}
	s := supervise(t, playing("p", 10, succeeds, "A", "B"), playing("q", 10, succeeds, "C", "D"))
	here := launch(t, ledger, s, polling(aLongTime))
	elsewhere := launch(t, db, supervise(t), polling(aLongTime))
	for i := range jobs {
		from, jobType := here, "B"
		if i%2 == 1 {
			from, jobType = elsewhere, "D"
		}
		awaitState(t, db, submitted(t, from, ofType(jobType)), job.Succeeded)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Positive(t, claims["B"])
	require.Positive(t, claims["D"])
	require.GreaterOrEqual(t, claims["A+B"]+claims["B"]+claims["C+D"]+claims["D"], jobs)
	// At the start, and when hints are listened for, each time with another look.
	require.LessOrEqual(t, claims["A+B"], 6)
	require.LessOrEqual(t, claims["C+D"], 6)
}

// What was hinted at while no plugin served it is found as soon as one does.
func TestAPluginThatComesBackFindsWhatWasHintedMeanwhile(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	there := []*handlers{playing("p", 10, succeeds, "A"), playing("q", 10, succeeds, "B", "C")}
	s := supervise(t, there...)
	p := launch(t, db, s, polling(aLongTime))
	have := func(plugins []*handlers) {
		s.mu.Lock()
		s.plugins = plugins
		s.mu.Unlock()
		s.changed <- struct{}{}
	}
	awaitState(t, db, submitted(t, p, ofType("B")), job.Succeeded)
	have(there[:1])
	id := submitted(t, p, ofType("B"))
	awaitState(t, db, submitted(t, p, ofType("A")), job.Succeeded) // the hint about the other was heard by then
	have(there)
	awaitSoon(t, db, id)
}

// awaitSoon returns once the job has succeeded. After a minute the worker would notice by
// itself that it waits.
func awaitSoon(t *testing.T, db *database, id job.ID) {
	t.Helper()
	require.Eventually(t, func() bool { return view(t, db, id).State == job.Succeeded }, 50*time.Second, tick)
}

// The one slot is for the most urgent job, but that is under the lock of another claimer.
func TestAHintThatMetALockIsFollowedByAnotherLook(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	claims := make(chan struct{}, 100)
	ledger := &hooked{Store: db, listen: func() error { return errors.New("deaf") }, claimed: func(err error) error {
		claims <- struct{}{}
		return err
	}}
	s := supervise(t, playing("p", 1, succeeds, "A", "B"))
	p := launch(t, ledger, s, polling(aLongTime))
	awaitSignal(t, claims, "the claim at the start")
	urgent := given(t, db, func(s *job.Submission) { s.Type, s.Priority = "A", 1 })
	locked, err := db.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = locked.Rollback(context.Background()) })
	_, err = locked.Exec(t.Context(), "select from ready where job_type = 'A' for update")
	require.NoError(t, err)
	other := given(t, db, ofType("B"))
	p.JobsReady()
	awaitSignal(t, claims, "a claim that finds nothing")
	require.NoError(t, locked.Rollback(t.Context()))
	awaitSoon(t, db, urgent)
	awaitSoon(t, db, other)
}
