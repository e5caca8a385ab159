package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// direct is the service of a process without a worker, and its store.
type direct struct {
	*Service
	ledger *store.Store
}

// open returns a service that runs, and the hints that others hear of it.
func open(t *testing.T, changes ...func(*Config)) (*direct, <-chan job.Hint) {
	t.Helper()
	ledger := storetest.Open(t, pgtest.URL(t), 4)
	heard := make(chan job.Hint, 1000)
	listening, ready := make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(listening)
		_ = ledger.Listen(ctx, func() { close(ready) }, func(n job.Notice) { heard <- n.Hint })
	}()
	<-ready
	t.Cleanup(func() {
		stop()
		<-listening
	})
	cfg := Config{
		PollInterval: 250 * time.Millisecond, PollOnly: true, Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{},
		Resolve: func(spec job.TypeSpec) job.TypeSpec { spec.MaxAttempts = 9; return spec },
	}
	for _, change := range changes {
		change(&cfg)
	}
	s, err := New(cfg, ledger)
	require.NoError(t, err)
	s.Admits() // so others are not told of what happens at gates
	running(t, s.Run)
	return &direct{s, ledger}, heard
}

func hear(t *testing.T, heard <-chan job.Hint, want job.Hint) {
	t.Helper()
	select {
	case hint := <-heard:
		require.Equal(t, want, hint)
	case <-time.After(patience):
		t.Fatalf("%s is not heard", want)
	}
}

func submission(t *testing.T, changes ...func(*job.Submission)) job.Submission {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	s := job.Submission{
		ID: job.ID(id), Type: "ECHO", Tenant: job.DefaultTenant, Payload: json.RawMessage("1"), MaxAttempts: 1, Timeout: time.Second,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func held(s *job.Submission) { s.Hold = true }

func TestEveryChangeSendsAHint(t *testing.T) {
	jobs, heard := open(t)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	_, err = jobs.Cancel(t.Context(), receipt.ID)
	require.NoError(t, err)
	hear(t, heard, job.JobsEnded)

	// The next ones may come too soon after these, but are sent in the end.
	_, err = jobs.SubmitAll(t.Context(), []job.Submission{submission(t), submission(t)})
	require.NoError(t, err)
	waiting, err := jobs.Submit(t.Context(), submission(t, held))
	require.NoError(t, err)
	_, err = jobs.Release(t.Context(), waiting.ID)
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
}

// A process that does not admit jobs itself tells those that do.
func TestWhatHappensAtGatesIsHinted(t *testing.T) {
	jobs, heard := open(t)
	jobs.admits = false
	_, err := jobs.Submit(t.Context(), submission(t, func(s *job.Submission) { s.Terms.ConcurrencyKey = "k" }))
	require.NoError(t, err)
	hear(t, heard, job.GatesChanged)
	jobs.Settled(&job.Lease{Gated: true}, &job.Decision{})
	hear(t, heard, job.GatesChanged)
}

// More jobs than one insert may have, some of which need not wait for the disk.
func TestTheFirstOfManyWithAKeyCounts(t *testing.T) {
	jobs, heard := open(t, func(c *Config) { c.Fast = func(jobType string) bool { return jobType == "FAST" } })
	batch := make([]job.Submission, 1200)
	for i := range batch {
		batch[i] = submission(t, func(s *job.Submission) {
			if s.IdempotencyKey = "k"; i%2 == 0 {
				s.Type = "FAST"
			}
		})
	}
	results := jobs.SubmitEach(t.Context(), batch)
	require.Len(t, results, len(batch))
	for i, result := range results {
		if i%2 == 1 {
			require.ErrorIs(t, result.Err, job.ErrKeyReused, "it has another type")
			continue
		}
		require.NoError(t, result.Err)
		require.Equal(t, batch[0].ID, result.Receipt.ID)
		require.Equal(t, i > 0, result.Receipt.Replayed)
	}
	require.False(t, batch[0].Fast, "the caller's own stays as it is")
	hear(t, heard, job.JobsReady)
}

func TestDeadJobsAreRequeuedWithAHint(t *testing.T) {
	jobs, heard := open(t)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	deadLetter(t, jobs)
	_, err = jobs.Requeue(t.Context(), receipt.ID)
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	deadLetter(t, jobs)
	count, err := jobs.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, 1, count)
	hear(t, heard, job.JobsReady)
}

func TestACancelSendsAHintToTheOwnerOfARunningJob(t *testing.T) {
	jobs, heard := open(t)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	claim(t, jobs)
	view, err := jobs.Cancel(t.Context(), receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.Running, view.State)
	hear(t, heard, job.CancelAsked)
}

// deadLetter makes the one job that is queued fail for good.
func deadLetter(t *testing.T, jobs *direct) {
	t.Helper()
	fates, err := jobs.ledger.Settle(t.Context(), []job.Settlement{{
		Lease: claim(t, jobs), Decision: job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}, Number: 1, Error: "broken",
	}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Settled}, fates)
}

// claim takes the one job that is queued.
func claim(t *testing.T, jobs *direct) job.Lease {
	t.Helper()
	const worker = "w"
	require.NoError(t, jobs.ledger.RegisterWorker(t.Context(), job.Worker{ID: worker, Host: "h", Roles: job.AllRoles()}, time.Minute))
	claimed, err := jobs.ledger.Claim(t.Context(), worker, []string{"ECHO"}, 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	return claimed[0].Lease
}

func TestAnAwaitedJobIsReturnedWhenItEnds(t *testing.T) {
	jobs, _ := open(t)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)

	soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	view, err := jobs.Await(soon, receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.Queued, view.State, "as it is when the time is over")

	ended := make(chan job.View)
	go func() {
		view, err := jobs.Await(t.Context(), receipt.ID)
		if err != nil {
			view.State = job.State(err.Error())
		}
		ended <- view
	}()
	_, err = jobs.Cancel(t.Context(), receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.Canceled, (<-ended).State)

	_, err = jobs.Await(t.Context(), job.ID{})
	require.ErrorIs(t, err, job.ErrNotFound)
}

func TestTypesAreThoseDeclaredByWorkers(t *testing.T) {
	jobs, _ := open(t)
	_, err := jobs.TypeSpec(t.Context(), "ECHO")
	require.ErrorIs(t, err, job.ErrUnknownType)

	spec := job.TypeSpec{Type: "ECHO", Plugin: "p", MaxAttempts: 3, Timeout: time.Second, Retry: job.DefaultRetryPolicy()}
	require.NoError(t, jobs.ledger.DeclareTypes(t.Context(), []job.TypeSpec{spec}))
	require.Eventually(t, func() bool {
		found, err := jobs.TypeSpec(t.Context(), "ECHO")
		return err == nil && found.MaxAttempts == 3
	}, patience, 10*time.Millisecond, "a type that has come up meanwhile is found")

	jobs.cfg.AcceptUnknownTypes = true
	found, err := jobs.TypeSpec(t.Context(), "OTHER")
	require.NoError(t, err)
	require.Equal(t, 9, found.MaxAttempts)
}
