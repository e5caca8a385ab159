package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func detail(t testing.TB, s *Store, id job.ID) job.Detail {
	t.Helper()
	detail, err := s.Detail(t.Context(), id)
	require.NoError(t, err)
	return detail
}

func TestTheDetailOfARunningJob(t *testing.T) {
	s := open(t)
	due := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	first := running(t, s, func(j *job.Submission) {
		j.Tenant, j.IdempotencyKey, j.Tags, j.Priority, j.RunAt = "acme", "key", []string{"a", "b"}, 7, due
		j.Trace = job.Trace{Parent: "00-1-2-01", State: "k=v"}
	})
	settled(t, s, first, job.Failure)
	promote(t, s, 10)
	s.marks = newLowWaterMarks()
	c := claim(t, s, 1)[0]
	note(t, s, job.Report{Lease: c.Lease, Progress: json.RawMessage(`1`), Checkpoint: json.RawMessage(`[2]`)})
	_, err := s.Cancel(t.Context(), c.JobID)
	require.NoError(t, err)

	got := detail(t, s, c.JobID)
	require.Equal(t, get(t, s, c.JobID), got.View)
	require.Len(t, got.Attempts, 1)
	require.Equal(t, "at line 1", got.Attempts[0].Stack)
	require.Equal(t, "it broke", got.Attempts[0].Error)
	require.Equal(t, job.Trace{Parent: "00-1-2-01", State: "k=v"}, got.Trace)
	got.View, got.Attempts = job.View{}, nil
	require.WithinDuration(t, c.RunAt, got.RunAt, 0, "when the retry was due")
	require.WithinDuration(t, c.ClaimedAt, got.Lease.ClaimedAt, 0)
	require.WithinDuration(t, c.ClaimedAt.Add(aMinute), got.Lease.ExpiresAt, 0)
	require.Equal(t, job.Detail{
		Payload: json.RawMessage(`{"n": 1}`), Checkpoint: json.RawMessage(`[2]`), IdempotencyKey: "key",
		Tags: []string{"a", "b"}, Priority: 7, RunAt: got.RunAt, Charged: 2, MaxAttempts: 4, Fence: 2,
		Timeout: 30 * time.Second, LastError: "it broke", Worker: worker,
		Lease: &job.LeaseView{
			Worker: worker, ClaimedAt: got.Lease.ClaimedAt, ExpiresAt: got.Lease.ExpiresAt, CancelRequested: true,
		},
	}, got)
}

func TestTheDetailInEveryState(t *testing.T) {
	s := open(t)
	for _, state := range job.States() {
		t.Run(string(state), func(t *testing.T) {
			id := inState(t, s, state)
			got := detail(t, s, id)
			require.Equal(t, get(t, s, id), got.View)
			require.Equal(t, state == job.Running, got.Lease != nil)
			require.Equal(t, state == job.Created, got.RunAt.IsZero(), "it is held")
			require.Equal(t, state == job.Created || state == job.Queued || state == job.Running, len(got.Attempts) == 0)
		})
	}
	_, err := s.Detail(t.Context(), newID(t))
	require.ErrorIs(t, err, job.ErrNotFound)
}

func TestTheDetailShowsTheTermsOfAJob(t *testing.T) {
	s := open(t)
	terms := job.Terms{ConcurrencyKey: "customer:42", ConcurrencyLimit: 3, OnConflict: job.ConflictCancelOldest, FairnessKey: "eu"}
	shares := func(j *job.Submission) { j.Terms = terms }
	held := func(j *job.Submission) { j.Hold = true }
	ids := submit(t, s, submission(t, shares, held), submission(t, shares, gated(keyGate)), submission(t), submission(t, gated(typeGate)))
	for i, want := range []job.Terms{terms, terms, {}, {}} {
		require.Equal(t, want, detail(t, s, ids[i]).Terms)
	}
	_, err := s.Cancel(t.Context(), ids[1])
	require.NoError(t, err)
	require.Equal(t, terms, detail(t, s, ids[1]).Terms, "it has ended")
}

func TestTheDetailShowsWhomAJobTells(t *testing.T) {
	s := open(t)
	ids := submit(t, s, submission(t, func(j *job.Submission) { j.CallbackURL, j.Followed = hook, true }), submission(t))
	require.Equal(t, hook, detail(t, s, ids[0]).Callback)
	require.Empty(t, detail(t, s, ids[1]).Callback)
	_, err := s.Cancel(t.Context(), ids[0])
	require.NoError(t, err)
	_, err = s.Erase(t.Context(), ids[0], "me", "")
	require.NoError(t, err)
	require.Empty(t, detail(t, s, ids[0]).Callback, "erased with what else the client has sent")
}
