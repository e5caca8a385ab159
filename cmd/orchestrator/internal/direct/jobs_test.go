package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
	"github.com/holdfast-jobs/holdfast/store/storetest"
)

var _ api.Jobs = (*Jobs)(nil)

// open returns a ledger, and the hints that others hear of it.
func open(t *testing.T, accept func(string) job.TypeSpec) (*Jobs, <-chan job.Hint) {
	t.Helper()
	ledger, err := store.Open(t.Context(), store.Config{URL: storetest.URL(t), MaxConnections: 4})
	require.NoError(t, err)
	heard := make(chan job.Hint, 1000)
	listening, ready := make(chan struct{}), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(listening)
		_ = ledger.Listen(ctx, func() { close(ready) }, func(hint job.Hint) { heard <- hint })
	}()
	<-ready
	t.Cleanup(func() {
		stop()
		<-listening
		ledger.Close()
	})
	return NewJobs(ledger, accept), heard
}

func hear(t *testing.T, heard <-chan job.Hint, want job.Hint) {
	t.Helper()
	select {
	case hint := <-heard:
		require.Equal(t, want, hint)
	case <-time.After(20 * time.Second):
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

func TestEveryChangeIsHintedAt(t *testing.T) {
	jobs, heard := open(t, nil)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	_, err = jobs.Cancel(t.Context(), receipt.ID)
	require.NoError(t, err)
	hear(t, heard, job.JobsEnded)

	// The next ones come too soon after these, and are sent in the end.
	_, err = jobs.SubmitAll(t.Context(), []job.Submission{submission(t), submission(t)})
	require.NoError(t, err)
	waiting, err := jobs.Submit(t.Context(), submission(t, held))
	require.NoError(t, err)
	_, err = jobs.Release(t.Context(), waiting.ID)
	require.NoError(t, err)
	jobs.Flush(t.Context())
	hear(t, heard, job.JobsReady)
	jobs.Flush(t.Context())
	require.Empty(t, heard)
}

func TestDeadJobsAreRequeuedWithAHint(t *testing.T) {
	jobs, heard := open(t, nil)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	bury(t, jobs)
	_, err = jobs.Requeue(t.Context(), receipt.ID)
	require.NoError(t, err)
	jobs.Flush(t.Context())
	hear(t, heard, job.JobsReady)
	bury(t, jobs)
	count, err := jobs.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, 1, count)
	jobs.Flush(t.Context())
	hear(t, heard, job.JobsReady)
}

func TestTheOwnerOfARunningJobIsToldOfItsCancel(t *testing.T) {
	jobs, heard := open(t, nil)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)
	hear(t, heard, job.JobsReady)
	claim(t, jobs)
	view, err := jobs.Cancel(t.Context(), receipt.ID)
	require.NoError(t, err)
	require.Equal(t, job.Running, view.State)
	hear(t, heard, job.CancelAsked)
}

// bury has the one job that is queued fail for good.
func bury(t *testing.T, jobs *Jobs) {
	t.Helper()
	fates, err := jobs.Settle(t.Context(), []job.Settlement{{
		Lease: claim(t, jobs), Decision: job.Decision{To: job.Dead, Kind: job.PermanentFailure, Attempt: 1}, Number: 1, Error: "broken",
	}})
	require.NoError(t, err)
	require.Equal(t, []job.SettleResult{job.Settled}, fates)
}

// claim takes the one job that is queued.
func claim(t *testing.T, jobs *Jobs) job.Lease {
	t.Helper()
	const worker = "w"
	require.NoError(t, jobs.RegisterWorker(t.Context(), job.Worker{ID: worker, Host: "h"}, time.Minute))
	claimed, err := jobs.Claim(t.Context(), worker, []string{"ECHO"}, 1, time.Minute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	return claimed[0].Lease
}

func TestAnAwaitedJobIsReturnedWhenItEnds(t *testing.T) {
	jobs, _ := open(t, nil)
	receipt, err := jobs.Submit(t.Context(), submission(t))
	require.NoError(t, err)

	soon, cancel := context.WithTimeout(t.Context(), 2*pollEnded)
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

func TestTypesAreThoseThatWorkersHaveDeclared(t *testing.T) {
	jobs, _ := open(t, nil)
	_, err := jobs.TypeSpec(t.Context(), "ECHO")
	require.ErrorIs(t, err, job.ErrUnknownType)

	spec := job.TypeSpec{Type: "ECHO", Plugin: "p", MaxAttempts: 3, Timeout: time.Second, Retry: job.DefaultRetryPolicy()}
	require.NoError(t, jobs.DeclareTypes(t.Context(), []job.TypeSpec{spec}))
	require.Eventually(t, func() bool {
		found, err := jobs.TypeSpec(t.Context(), "ECHO")
		return err == nil && found.MaxAttempts == 3
	}, 10*time.Second, 10*time.Millisecond, "a type that has come up meanwhile is found")

	jobs.accept = func(jobType string) job.TypeSpec { return job.TypeSpec{Type: jobType, MaxAttempts: 9} }
	found, err := jobs.TypeSpec(t.Context(), "OTHER")
	require.NoError(t, err)
	require.Equal(t, 9, found.MaxAttempts)
}

func TestSubmissionsAtTheSameTimeAreStoredTogether(t *testing.T) {
	const n = 1200
	var mu sync.Mutex
	var sizes []int
	began, release := make(chan int, n), make(chan struct{})
	g := &group{store: func(_ context.Context, batch []job.Submission) []job.Submitted {
		began <- len(batch)
		<-release
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(batch))
		results := make([]job.Submitted, len(batch))
		for i, s := range batch {
			results[i].Receipt.ID = s.ID
		}
		return results
	}}
	var all sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		all.Go(func() {
			id := job.ID{byte(i), byte(i >> 8)}
			if got := g.submit(t.Context(), job.Submission{ID: id}).Receipt.ID; got != id {
				errs <- fmt.Errorf("%s got the answer of %s", id, got)
			}
		})
	}
	first := <-began
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.pending) == n-first
	}, 10*time.Second, time.Millisecond)
	close(release)
	all.Wait()
	require.Empty(t, errs)
	total := 0
	for _, size := range sizes {
		require.LessOrEqual(t, size, groupMost)
		total += size
	}
	require.Equal(t, n, total)
	require.LessOrEqual(t, len(sizes), 1+(n+groupMost-1)/groupMost)
}

func TestASubmitterCanLeaveTheGroup(t *testing.T) {
	storing, release := make(chan struct{}), make(chan struct{})
	g := &group{store: func(context.Context, []job.Submission) []job.Submitted {
		close(storing)
		<-release
		return make([]job.Submitted, 1)
	}}
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-storing
		leave()
	}()
	require.ErrorIs(t, g.submit(ctx, job.Submission{}).Err, context.Canceled)
	close(release)
}
