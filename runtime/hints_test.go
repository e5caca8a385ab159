package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAHintStartsAJobThatWasSubmittedElsewhere(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, db, s, polling(aLongTime))
	front := launch(t, openAt(t, db.url), supervise(t), polling(aLongTime))
	for range 3 { // the second and third find a claimer at rest
		receipt, err := front.Submit(t.Context(), submission(t))
		require.NoError(t, err)
		require.Equal(t, job.Queued, receipt.State)
		awaitState(t, db, receipt.ID, job.Succeeded)
	}
}

func TestWithoutHintsAJobIsFoundByPolling(t *testing.T) {
	t.Parallel()
	broken := errors.New("not through this pooler")
	db := fresh(t)
	silent := func(s *hooked) *hooked {
		s.send = func(job.Notice) error { return broken }
		s.listen = func() error { return broken }
		return s
	}
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, silent(&hooked{Store: db}), s, polling(50*time.Millisecond))
	front := launch(t, silent(&hooked{Store: openAt(t, db.url)}), supervise(t), polling(aLongTime))
	for range 3 {
		receipt, err := front.Submit(t.Context(), submission(t))
		require.NoError(t, err)
		awaitState(t, db, receipt.ID, job.Succeeded)
	}
}

// What was missed while nobody listened is looked for once somebody does.
func TestALostListeningConnectionIsReopened(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	listeners := func() int {
		return ask[int](t, db, `select count(*) from pg_stat_activity
			where datname = current_database() and application_name = 'holdfast listener'`)
	}
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, db, s, polling(aLongTime))
	await(t, func() bool { return listeners() == 1 })
	listener := ask[int](t, db, `select pid from pg_stat_activity
		where datname = current_database() and application_name = 'holdfast listener'`)
	require.True(t, ask[bool](t, db, "select pg_terminate_backend($1)", listener))
	id := given(t, db)
	awaitState(t, db, id, job.Succeeded)
}

// Everybody polls an hour apart.
func TestAHintThatCouldNotBeSentIsSentAgain(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	s := supervise(t, playing("p", 1, succeeds, echo))
	launch(t, db, s, polling(aLongTime))
	var tries atomic.Int32
	first, err := launch(t, db, supervise(t)).Submit(t.Context(), submission(t))
	require.NoError(t, err)
	awaitState(t, db, first.ID, job.Succeeded) // the worker is soon at rest
	front := launch(t, &hooked{Store: openAt(t, db.url), send: func(n job.Notice) error {
		if n.Hint == job.JobsReady && tries.Add(1) <= 2 {
			return job.ErrUnavailable
		}
		return db.Send(t.Context(), n)
	}}, supervise(t), polling(aLongTime))
	awaitState(t, db, submitted(t, front), job.Succeeded)
	await(t, func() bool { return tries.Load() > 2 }, "the hint is sent at last, whoever found the job")
}

func TestHintsInCloseSuccessionAreSentAsOne(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	var sent atomic.Int32
	first, goOn := make(chan struct{}), make(chan struct{})
	ledger := &hooked{Store: db, send: func(n job.Notice) error {
		if n.Hint == job.JobsReady && sent.Add(1) == 1 {
			close(first)
			<-goOn
		}
		return nil
	}}
	p := launch(t, ledger, supervise(t))
	p.JobsReady()
	awaitSignal(t, first, "a hint to be sent")
	for range 1000 {
		p.JobsReady()
	}
	close(goOn)
	await(t, func() bool { return sent.Load() == 2 })
	p.drain()
	p.awaitEnd(t)
	require.EqualValues(t, 2, sent.Load())
}

func TestASubmissionReturnsTheDatabasesAnswer(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	p := launch(t, db, supervise(t))
	keyed := func(s *job.Submission) { s.IdempotencyKey = "k" }
	first, err := p.Submit(t.Context(), submission(t, keyed))
	require.NoError(t, err)
	again, err := p.Submit(t.Context(), submission(t, keyed))
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.True(t, again.Replayed)
	_, err = p.Submit(t.Context(), submission(t, keyed, ofType("OTHER")))
	require.ErrorIs(t, err, job.ErrKeyReused)
	_, err = p.Submit(t.Context(), submission(t, func(s *job.Submission) { s.Payload = []byte("{") }))
	require.ErrorIs(t, err, job.ErrBadData)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Submit(canceled, submission(t))
	if err != nil { // it may have been stored or not
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestATypeThatAnotherWorkerDeclaredIsKnown(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	front := launch(t, db, supervise(t))
	_, err := front.TypeSpec(t.Context(), echo)
	require.ErrorIs(t, err, job.ErrUnknownType)
	policy := job.RetryPolicy{Backoff: job.Fixed, InitialDelay: time.Minute, JitterMin: 1, JitterMax: 1}
	launch(t, openAt(t, db.url), supervise(t, playing("p", 1, succeeds, echo)), waiting(time.Minute))
	await(t, func() bool {
		spec, err := front.TypeSpec(t.Context(), echo)
		return err == nil && spec.Plugin == "p" && spec.Retry == policy
	})
}

func TestAChangedDeclarationIsSoonKnown(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	front := launch(t, db, supervise(t))
	for _, delay := range []time.Duration{time.Minute, time.Hour} {
		launch(t, openAt(t, db.url), supervise(t, playing("p", 1, succeeds, echo)), waiting(delay))
		await(t, func() bool {
			spec, err := front.TypeSpec(t.Context(), echo)
			return err == nil && spec.Retry.InitialDelay == delay
		})
	}
}

// Whoever stores a job claims it, and tells others only of what it leaves.
func TestOthersAreToldOfWhatTheSubmitterLeaves(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	told := make(chan job.Notice, 100)
	ledger := &hooked{Store: db, send: func(n job.Notice) error {
		if n.Hint == job.JobsReady {
			told <- n
		}
		return nil
	}}
	s := supervise(t, playing("p", 10, succeeds, "TAKEN"), playing("q", 1, stops, "LEFT"))
	p := launch(t, ledger, s, polling(aLongTime))
	for range 3 {
		awaitState(t, db, submitted(t, p, ofType("TAKEN")), job.Succeeded)
	}
	awaitState(t, db, submitted(t, p, ofType("LEFT")), job.Running)
	submitted(t, p, ofType("LEFT"))    // there is no slot for it
	submitted(t, p, ofType("NOBODYS")) // this worker has no plugin for it
	var types []string
	for !slices.Contains(types, "LEFT") || !slices.Contains(types, "NOBODYS") {
		types = append(types, awaitSignal(t, told, "word of what is left").Types...)
	}
	require.NotContains(t, types, "TAKEN")
}
