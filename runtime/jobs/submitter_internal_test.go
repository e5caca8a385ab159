package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
	"github.com/holdfast-jobs/holdfast/test/flushes"
)

// ledger is a store that submits; any other verb panics.
type ledger struct {
	Store
	submit func([]job.Submission) []job.Submitted
}

func (l *ledger) Submit(_ context.Context, batch []job.Submission) []job.Submitted {
	return l.submit(batch)
}

// unmeasured is metrics that go nowhere.
func unmeasured(t *testing.T) *metrics.Metrics {
	t.Helper()
	none, err := metrics.New(noop.Meter{})
	require.NoError(t, err)
	return none
}

func TestSubmissionsThatArriveDuringAnInsertShareTheNext(t *testing.T) {
	f := flushes.New()
	woken := make(chan struct{}, 100)
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		f.Of(len(batch))
		answers := make([]job.Submitted, len(batch))
		for i, one := range batch {
			answers[i].Receipt = job.Receipt{ID: one.ID, State: job.Queued}
			if one.Type == "BAD" {
				answers[i] = job.Submitted{Err: job.ErrBadData}
			}
		}
		return answers
	}}, func([]job.Submission, []job.Submitted) { woken <- struct{}{} }, unmeasured(t))
	running(t, s.durable.run)

	const many = 50
	answers := make(chan error, many+1)
	submit := func(i int) {
		wanted := job.Submission{ID: job.ID{byte(i)}}
		if i%10 == 9 {
			wanted.Type = "BAD"
		}
		receipt, err := s.submit(t.Context(), wanted)
		if err == nil && receipt.ID != wanted.ID {
			err = errors.New("another's receipt")
		}
		answers <- err
	}
	go submit(0)
	require.Equal(t, 1, f.Next(t), "a lone one does not wait")
	for i := range many {
		go submit(i + 1)
	}
	require.Eventually(t, func() bool {
		s.durable.mu.Lock()
		defer s.durable.mu.Unlock()
		return len(s.durable.pending) == many
	}, patience, time.Millisecond)
	f.None(t)
	close(f.First)
	require.Equal(t, many, f.Next(t))
	refused := 0
	for range many + 1 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, job.ErrBadData)
			refused++
		}
	}
	require.Equal(t, many/10, refused)
	f.None(t)
	require.Len(t, woken, 2, "a batch is announced once")
}

func TestSubmissionsThatWaitForTheDiskAndThoseThatDoNotShareNoInsert(t *testing.T) {
	f := flushes.New()
	mixed := make(chan bool, 100)
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		for _, one := range batch {
			mixed <- one.Fast != batch[0].Fast
		}
		if !batch[0].Fast {
			f.Of(len(batch))
		}
		return make([]job.Submitted, len(batch))
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	running(t, s.durable.run)
	running(t, s.fast.run)
	answered := make(chan error, 20)
	submit := func(fast bool) {
		_, err := s.submit(t.Context(), job.Submission{Fast: fast})
		answered <- err
	}
	go submit(false)
	f.Next(t)
	for range 5 {
		go submit(false)
		submit(true) // it waits for no insert of the others
		require.NoError(t, <-answered)
	}
	close(f.First)
	for range 6 {
		require.NoError(t, <-answered)
	}
	require.Len(t, mixed, 11)
	for range 11 {
		require.False(t, <-mixed)
	}
}

// A submission whose caller has gone away is stored all the same, and keeps
// nobody waiting.
func TestACallerThatGivesUpDoesNotDelayOthers(t *testing.T) {
	f := flushes.New()
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		f.Of(len(batch))
		return make([]job.Submitted, len(batch))
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	running(t, s.durable.run)
	inserting := make(chan error, 1)
	go func() { // it sees the insert through, also for others
		_, err := s.submit(t.Context(), job.Submission{})
		inserting <- err
	}()
	f.Next(t)
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := s.submit(ctx, job.Submission{})
	require.ErrorIs(t, err, context.Canceled)
	close(f.First)
	require.NoError(t, <-inserting)
	_, err = s.submit(t.Context(), job.Submission{})
	require.NoError(t, err)
}

func TestNobodyWaitsForAnInsertThatPanicked(t *testing.T) {
	s := newSubmitter(&ledger{submit: func([]job.Submission) []job.Submitted { panic("a defect") }},
		func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	other := pendingSubmission{done: make(chan job.Submitted, 1)}
	require.Panics(t, func() { s.flush([]pendingSubmission{{done: make(chan job.Submitted, 1)}, other}) })
	require.ErrorContains(t, (<-other.done).Err, "a defect")
}

// While the database does not answer, clients give up and others come.
func TestAnAbandonedSubmissionIsNotKept(t *testing.T) {
	answering := make(chan struct{})
	sent := make(chan int, 2)
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		sent <- len(batch)
		<-answering
		return make([]job.Submitted, len(batch))
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	running(t, s.durable.run)
	s.durable.add(pendingSubmission{done: make(chan job.Submitted, 1)})
	require.Equal(t, 1, <-sent)

	over, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := s.submit(over, job.Submission{ID: job.ID{2}})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, job.ErrOutcomeUnknown, "it was not sent")
	s.durable.mu.Lock()
	require.Empty(t, s.durable.pending)
	s.durable.mu.Unlock()
	close(answering)
}

func TestASubmissionWithoutAnAnswerHasAnUnknownOutcome(t *testing.T) {
	sent, answering := make(chan struct{}), make(chan struct{})
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		close(sent)
		<-answering
		return make([]job.Submitted, len(batch))
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	running(t, s.durable.run)
	s.durable.turn <- struct{}{} // somebody else flushes
	ctx, giveUp := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := s.submit(ctx, job.Submission{ID: job.ID{1}})
		failed <- err
	}()
	require.Eventually(t, func() bool {
		s.durable.mu.Lock()
		defer s.durable.mu.Unlock()
		return len(s.durable.pending) == 1
	}, patience, time.Millisecond)
	s.durable.yield()
	<-sent
	giveUp()
	require.ErrorIs(t, <-failed, job.ErrOutcomeUnknown)
	close(answering)
}

func TestAnAnswerThatCameCountsEvenIfTheContextHasEnded(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		giveUp()
		return make([]job.Submitted, len(batch))
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	for _, result := range s.submitEach(ctx, make([]job.Submission, 20)) {
		require.NoError(t, result.Err)
	}
}

func TestSubmissionsOfOneCallShareAnInsertInTheirOrder(t *testing.T) {
	var inserts [][]job.Submission
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		inserts = append(inserts, batch)
		answers := make([]job.Submitted, len(batch))
		for i, one := range batch {
			answers[i].Receipt.ID = one.ID
			if one.Type == "BAD" {
				answers[i] = job.Submitted{Err: job.ErrBadData}
			}
		}
		return answers
	}}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	for name, batch := range map[string][]job.Submission{
		"durable": {{ID: job.ID{1}}, {ID: job.ID{2}, Type: "BAD"}, {ID: job.ID{3}}},
		"fast":    {{ID: job.ID{1}, Fast: true}, {ID: job.ID{2}, Fast: true}},
		"both":    {{ID: job.ID{1}, Fast: true}, {ID: job.ID{2}}, {ID: job.ID{3}, Fast: true}},
	} {
		inserts = nil
		results := s.submitEach(t.Context(), batch)
		require.Equal(t, [][]job.Submission{batch}, inserts, name)
		require.Len(t, results, len(batch), name)
		for i, result := range results {
			if batch[i].Type == "BAD" {
				require.ErrorIs(t, result.Err, job.ErrBadData, name)
				continue
			}
			require.NoError(t, result.Err, name)
			require.Equal(t, batch[i].ID, result.Receipt.ID, name)
		}
	}
}

func TestAnAbandonedCallLeavesNothingBehind(t *testing.T) {
	s := newSubmitter(&ledger{}, func([]job.Submission, []job.Submitted) {}, unmeasured(t))
	s.durable.turn <- struct{}{} // somebody else flushes
	s.durable.put([]pendingSubmission{{call: make(chan job.Submitted)}})
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	for _, result := range s.submitEach(ctx, make([]job.Submission, 1200)) {
		require.ErrorIs(t, result.Err, context.Canceled)
		require.NotErrorIs(t, result.Err, job.ErrOutcomeUnknown, "none was sent")
	}
	require.Len(t, s.durable.pending, 1, "those of other calls stay")
}
