package runtime

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ledger is a store in which the verbs under test are functions; any other
// panics.
type ledger struct {
	Store
	submit func([]job.Submission) []job.Submitted
	settle func([]job.Settlement) ([]job.SettleResult, error)
	note   func([]job.Report) error
	log    func([]job.Report) error
}

func (l *ledger) Submit(_ context.Context, batch []job.Submission) []job.Submitted {
	return l.submit(batch)
}

func (l *ledger) Settle(_ context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
	return l.settle(batch)
}

func (l *ledger) SaveProgress(_ context.Context, batch []job.Report) ([]job.Lease, error) {
	return nil, l.note(batch)
}

func (l *ledger) SaveLogs(_ context.Context, batch []job.Report) ([]job.Lease, error) {
	return nil, l.log(batch)
}

// settling is a settler on the ledger that runs until the end of the test.
func settling(t *testing.T, l *ledger) (*settler, *holdings) {
	t.Helper()
	held := newHoldings()
	cfg := Config{CrashPolicy: Release, MaxCrashes: func(string) int { return job.DefaultMaxCrashes }, Resolve: func(spec job.TypeSpec) job.TypeSpec {
		spec.Retry = job.RetryPolicy{Backoff: job.Immediate}
		return spec
	}, Log: slog.New(slog.DiscardHandler)}
	telemetry := unmeasured(t)
	s := newSettler(t.Context(), l, held, newCatalog(l, nil, cfg, telemetry), cfg, telemetry)
	s.queued, s.retried, s.ended = func() {}, func(time.Duration) {}, func(job.ID) {}
	running(t, s.batch.run)
	t.Cleanup(s.notes.close)
	return s, held
}

// unmeasured is telemetry that goes nowhere.
func unmeasured(t *testing.T) *telemetry {
	t.Helper()
	none, err := newTelemetry(noop.Meter{}, newHoldings())
	require.NoError(t, err)
	return none
}

// begun is an attempt under way.
func begun(s *settler, held *holdings, id byte) *attempt {
	a := newAttempt(job.Claimed{
		Lease: job.Lease{JobID: job.ID{id}, ID: job.LeaseID{id}}, Attempt: 1, MaxAttempts: 3, Timeout: time.Hour,
	}, job.Pool{}, time.Now().Add(time.Hour), time.Hour, s)
	held.add(a)
	return a
}

func TestAttemptsThatEndDuringAFlushAreSettledTogether(t *testing.T) {
	f := newFlushes()
	s, held := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		f.of(len(batch))
		fates := make([]job.SettleResult, len(batch))
		for i := range fates {
			fates[i] = job.Settled
		}
		return fates, nil
	}})
	const many = 50
	begun(s, held, 0).Finished(job.Outcome{Kind: job.Success})
	require.Equal(t, 1, f.next(t), "a lone one does not wait")
	for i := range many {
		begun(s, held, byte(i+1)).Finished(job.Outcome{Kind: job.Failure})
	}
	f.none(t)
	_, all := held.counts()
	require.Equal(t, many+1, all, "a lease is held until its settlement is known to be written")
	close(f.first)
	require.Equal(t, many, f.next(t))
	require.Eventually(t, func() bool { _, all := held.counts(); return all == 0 }, patience, time.Millisecond)
	f.none(t)
}

func TestWhatAnAttemptSavedIsWrittenBeforeItsEndIsAndOnlyTheLastOfIt(t *testing.T) {
	f := newFlushes()
	written := make(chan string, 10)
	s, held := settling(t, &ledger{
		note: func(batch []job.Report) error {
			for _, n := range batch {
				written <- string(n.Checkpoint) + " at " + string(n.Progress)
			}
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			written <- string(batch[0].Kind)
			f.of(len(batch))
			return []job.SettleResult{job.Settled}, nil
		},
	})
	begun(s, held, 1).Finished(job.Outcome{Kind: job.Success})
	f.next(t)
	require.Equal(t, "succeeded", <-written)
	a := begun(s, held, 2)
	a.Checkpoint([]byte("1"))
	a.Progress([]byte("10"))
	a.Checkpoint([]byte("2"))
	a.Progress([]byte("20"))
	a.Finished(job.Outcome{Kind: job.Failure})
	close(f.first)
	require.Equal(t, "2 at 20", <-written)
	require.Equal(t, "failed", <-written)
}

func TestASettlementIsTriedUntilTheDatabaseAnswers(t *testing.T) {
	tries := make(chan int, 10)
	left := 3
	s, held := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		tries <- len(batch)
		if left--; left > 0 {
			return nil, job.ErrUnavailable
		}
		return []job.SettleResult{job.Settled}, nil
	}})
	begun(s, held, 1).Finished(job.Outcome{Kind: job.Success})
	require.Eventually(t, func() bool { _, all := held.counts(); return all == 0 }, patience, time.Millisecond)
	require.Len(t, tries, 3)
}

// An error that trying again will not cure is found out one by one.
func TestASettlementThatBreaksTheWholeBatchIsGivenUpAlone(t *testing.T) {
	f := newFlushes()
	settled := make(chan job.ID, 10)
	s, held := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		f.of(len(batch))
		fates := make([]job.SettleResult, len(batch))
		for i, one := range batch {
			if one.JobID[0] == 3 {
				return nil, errors.New("internal error")
			}
			fates[i] = job.Settled
		}
		for _, one := range batch {
			settled <- one.JobID
		}
		return fates, nil
	}})
	for i := range 5 {
		begun(s, held, byte(i)).Finished(job.Outcome{Kind: job.Success})
	}
	close(f.first)
	require.Eventually(t, func() bool { _, all := held.counts(); return all == 0 }, patience, time.Millisecond)
	require.Len(t, settled, 4)
}
