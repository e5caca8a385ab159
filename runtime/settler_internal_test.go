package runtime

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/test/flushes"
)

const patience = 2 * time.Minute

// ledger is a store in which the verbs under test are functions; any other
// panics.
type ledger struct {
	Store
	settle func([]job.Settlement) ([]job.SettleResult, error)
	follow func([]job.Settlement) ([]job.SettleResult, [][]job.Submitted, error)
	note   func([]job.Report) error
	log    func([]job.Report) error
}

func (l *ledger) Settle(_ context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
	return l.settle(batch)
}

func (l *ledger) SettleWithFollowUps(_ context.Context, batch []job.Settlement) ([]job.SettleResult, [][]job.Submitted, error) {
	return l.follow(batch)
}

func (l *ledger) SaveProgress(_ context.Context, batch []job.Report) ([]job.Lease, error) {
	return nil, l.note(batch)
}

func (l *ledger) SaveLogs(_ context.Context, batch []job.Report) ([]job.Lease, error) {
	return nil, l.log(batch)
}

// settling is a path on the ledger that settles until the end of the test.
func settling(t *testing.T, l *ledger, changes ...func(*Config)) *path {
	t.Helper()
	cfg := Config{
		Config: jobs.Config{
			PollInterval: time.Second, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
			Resolve: func(spec job.TypeSpec) job.TypeSpec {
				spec.Retry = job.RetryPolicy{Backoff: job.Immediate}
				return spec
			},
		},
		CrashPolicy: Release, MaxCrashes: func(string) int { return job.DefaultMaxCrashes }, JobLog: LogNone, KillGrace: time.Hour,
	}
	for _, change := range changes {
		change(&cfg)
	}
	service, err := jobs.New(cfg.Config, l)
	require.NoError(t, err)
	p := newPath(t.Context(), cfg, l, nil, service, loop.NewSignal())
	r := newRing(context.Background())
	r.start(func(ctx context.Context) { p.settler.run(ctx, p.settle) })
	r.start(func(ctx context.Context) { p.parents.run(ctx, p.settleParents) })
	t.Cleanup(r.end)
	t.Cleanup(p.reports.Close)
	return p
}

// begun is an attempt under way.
func begun(p *path, id byte) *attempt {
	a := p.newAttempt(&job.Claimed{
		Lease: job.Lease{JobID: job.ID{id}, ID: job.LeaseID{id}}, Attempt: 1, MaxAttempts: 3, Timeout: time.Hour,
	}, &job.Pool{}, time.Now().Add(time.Hour), time.Now(), nil)
	p.inFlight.add(a)
	return a
}

func TestAttemptsThatEndDuringAFlushAreSettledTogether(t *testing.T) {
	f := flushes.New()
	p := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		f.Of(len(batch))
		fates := make([]job.SettleResult, len(batch))
		for i := range fates {
			fates[i] = job.Settled
		}
		return fates, nil
	}})
	const many = 50
	begun(p, 0).Finished(job.Outcome{Kind: job.Success})
	require.Equal(t, 1, f.Next(t), "a lone one does not wait")
	for i := range many {
		begun(p, byte(i+1)).Finished(job.Outcome{Kind: job.Failure})
	}
	f.None(t)
	_, all := p.inFlight.counts()
	require.Equal(t, many+1, all, "a lease is held until its settlement is known to be written")
	close(f.First)
	require.Equal(t, many, f.Next(t))
	require.Eventually(t, func() bool { _, all := p.inFlight.counts(); return all == 0 }, patience, time.Millisecond)
	f.None(t)
}

func TestOnlyTheLastReportsOfAnAttemptAreWrittenAndBeforeItsEnd(t *testing.T) {
	f := flushes.New()
	written := make(chan string, 10)
	writing, free := make(chan struct{}), make(chan struct{})
	p := settling(t, &ledger{
		note: func(batch []job.Report) error {
			if writing != nil {
				close(writing)
				writing = nil
				<-free
			}
			for _, n := range batch {
				written <- string(n.Checkpoint) + " at " + string(n.Progress)
			}
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			written <- string(batch[0].Kind)
			f.Of(len(batch))
			return []job.SettleResult{job.Settled}, nil
		},
	})
	began := writing
	begun(p, 1).Progress([]byte("30"))
	<-began // The reports that follow wait for this write.
	a := begun(p, 2)
	a.Checkpoint([]byte("1"))
	a.Progress([]byte("10"))
	a.Checkpoint([]byte("2"))
	a.Progress([]byte("20"))
	a.Finished(job.Outcome{Kind: job.Failure})
	close(free)
	close(f.First)
	require.Equal(t, " at 30", <-written)
	require.Equal(t, "2 at 20", <-written)
	require.Equal(t, "failed", <-written)
}

func TestASettlementIsTriedUntilTheDatabaseAnswers(t *testing.T) {
	tries := make(chan int, 10)
	left := 3
	p := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		tries <- len(batch)
		if left--; left > 0 {
			return nil, job.ErrUnavailable
		}
		return []job.SettleResult{job.Settled}, nil
	}})
	begun(p, 1).Finished(job.Outcome{Kind: job.Success})
	require.Eventually(t, func() bool { _, all := p.inFlight.counts(); return all == 0 }, patience, time.Millisecond)
	require.Len(t, tries, 3)
}

func TestAnAttemptThatCannotBeSettledYetIsTriedAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		var free atomic.Bool
		p := settling(t, &ledger{settle: func([]job.Settlement) ([]job.SettleResult, error) {
			if tries.Add(1); free.Load() {
				return []job.SettleResult{job.Settled}, nil
			}
			return []job.SettleResult{job.Held}, nil
		}})
		begun(p, 1).Finished(job.Outcome{Kind: job.Success})
		time.Sleep(10 * time.Second)
		require.Less(t, tries.Load(), int64(30))
		free.Store(true)
		time.Sleep(2 * longestPause)
		synctest.Wait()
		_, held := p.inFlight.counts()
		require.Zero(t, held)
	})
}

// An error that trying again will not cure is found out one by one.
func TestASettlementThatBreaksTheWholeBatchIsGivenUpAlone(t *testing.T) {
	f := flushes.New()
	settled := make(chan job.ID, 10)
	p := settling(t, &ledger{settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
		f.Of(len(batch))
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
		begun(p, byte(i)).Finished(job.Outcome{Kind: job.Success})
	}
	close(f.First)
	require.Eventually(t, func() bool { _, all := p.inFlight.counts(); return all == 0 }, patience, time.Millisecond)
	require.Len(t, settled, 4)
}

func TestAnAttemptWithoutReportsIsSettledWhileReportsAreSaved(t *testing.T) {
	saving, saved := make(chan struct{}, 10), make(chan struct{})
	settled := make(chan job.ID, 10)
	block := func([]job.Report) error {
		saving <- struct{}{}
		<-saved
		return nil
	}
	p := settling(t, &ledger{
		log: block, note: block,
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			fates := make([]job.SettleResult, len(batch))
			for i, one := range batch {
				settled <- one.JobID
				fates[i] = job.Settled
			}
			return fates, nil
		},
	})
	loud, telling, quiet := begun(p, 1), begun(p, 2), begun(p, 3)
	loud.pool.Plugin, telling.pool.Plugin = "loud", "telling"
	loud.Log(job.LogLine{Message: "one"})
	loud.Finished(job.Outcome{Kind: job.Success})
	telling.Progress([]byte("1"))
	telling.Finished(job.Outcome{Kind: job.Success})
	<-saving
	<-saving // neither plugin waits for the other
	quiet.Finished(job.Outcome{Kind: job.Success})
	require.Equal(t, quiet.claimed.JobID, <-settled)
	require.Empty(t, settled, "what an attempt has reported is saved before its end is")
	close(saved)
	require.ElementsMatch(t, []job.ID{loud.claimed.JobID, telling.claimed.JobID}, []job.ID{<-settled, <-settled})
}

func TestTheLastLogOfAnAttemptIsSavedBeforeItsEndWhileAnEarlierOneIsBeingSaved(t *testing.T) {
	saving, saved := make(chan string, 10), make(chan struct{}, 10)
	written := make(chan string, 10)
	p := settling(t, &ledger{
		log: func(batch []job.Report) error {
			lines := batch[0].Log.Lines
			saving <- lines[len(lines)-1].Message
			<-saved
			written <- lines[len(lines)-1].Message
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			written <- string(batch[0].Kind)
			return []job.SettleResult{job.Settled}, nil
		},
	})
	a := begun(p, 1)
	a.Log(job.LogLine{Message: "first"})
	require.Equal(t, "first", <-saving)
	a.Log(job.LogLine{Message: "last"})
	a.Finished(job.Outcome{Kind: job.Success})
	saved <- struct{}{}
	saved <- struct{}{}
	for _, want := range []string{"first", "last", "succeeded"} {
		require.Equal(t, want, <-written)
	}
	require.Eventually(t, func() bool { _, all := p.inFlight.counts(); return all == 0 }, patience, time.Millisecond)
}

func TestASettlementWaitsForReportsThatAreBeingSaved(t *testing.T) {
	saving, saved := make(chan struct{}), make(chan struct{})
	settled := make(chan struct{}, 1)
	p := settling(t, &ledger{
		note: func([]job.Report) error {
			saving <- struct{}{}
			<-saved
			return nil
		},
		settle: func([]job.Settlement) ([]job.SettleResult, error) {
			settled <- struct{}{}
			return []job.SettleResult{job.Settled}, nil
		},
	})
	a := begun(p, 1)
	a.Checkpoint([]byte("1"))
	<-saving
	a.Finished(job.Outcome{Kind: job.Failure})
	other := begun(p, 2)
	other.pool.Plugin = "other"
	other.Finished(job.Outcome{Kind: job.Success})
	<-settled
	require.Empty(t, settled)
	close(saved)
	<-settled
}
