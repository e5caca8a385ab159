package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestSubmissionsThatArriveDuringAnInsertShareTheNext(t *testing.T) {
	f := newFlushes()
	woken := make(chan struct{}, 100)
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		f.of(len(batch))
		answers := make([]job.Submitted, len(batch))
		for i, one := range batch {
			answers[i].Receipt = job.Receipt{ID: one.ID, State: job.Queued}
			if one.Type == "BAD" {
				answers[i] = job.Submitted{Err: job.ErrBadData}
			}
		}
		return answers
	}}, func() { woken <- struct{}{} }, func(time.Duration) {}, unmeasured(t))
	running(t, s.batch.run)

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
	require.Equal(t, 1, f.next(t), "a lone one does not wait")
	for i := range many {
		go submit(i + 1)
	}
	require.Eventually(t, func() bool {
		s.batch.mu.Lock()
		defer s.batch.mu.Unlock()
		return len(s.batch.pending) == many
	}, patience, time.Millisecond)
	f.none(t)
	close(f.first)
	require.Equal(t, many, f.next(t))
	refused := 0
	for range many + 1 {
		if err := <-answers; err != nil {
			require.ErrorIs(t, err, job.ErrBadData)
			refused++
		}
	}
	require.Equal(t, many/10, refused)
	f.none(t)
	require.Len(t, woken, 2, "a claimer is woken once for each batch")
}

// A submission whose caller has gone away is stored all the same, and keeps
// nobody waiting.
func TestACallerThatGivesUpDoesNotHoldUpTheOthers(t *testing.T) {
	f := newFlushes()
	s := newSubmitter(&ledger{submit: func(batch []job.Submission) []job.Submitted {
		f.of(len(batch))
		return make([]job.Submitted, len(batch))
	}}, func() {}, func(time.Duration) {}, unmeasured(t))
	running(t, s.batch.run)
	inserting := make(chan error, 1)
	go func() { // it sees the insert through, also for others
		_, err := s.submit(t.Context(), job.Submission{})
		inserting <- err
	}()
	f.next(t)
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	_, err := s.submit(ctx, job.Submission{})
	require.ErrorIs(t, err, context.Canceled)
	close(f.first)
	require.NoError(t, <-inserting)
	_, err = s.submit(t.Context(), job.Submission{})
	require.NoError(t, err)
}

func TestNobodyWaitsForAnInsertThatPanicked(t *testing.T) {
	s := newSubmitter(&ledger{submit: func([]job.Submission) []job.Submitted { panic("a defect") }},
		func() {}, func(time.Duration) {}, unmeasured(t))
	other := pendingSubmission{done: make(chan job.Submitted, 1)}
	require.Panics(t, func() { s.flush([]pendingSubmission{{done: make(chan job.Submitted, 1)}, other}) })
	require.ErrorContains(t, (<-other.done).Err, "a defect")
}
