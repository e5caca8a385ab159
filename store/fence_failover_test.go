package store

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// The old primary has leased the job under the fence that the new one gives out again. Nobody
// may hear of the first lease, whatever ends the wait for the standby, nor use it afterwards.
func TestNoFenceIsGivenTwiceAcrossAFailover(t *testing.T) {
	for fault, hit := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r := replicate(t)
			id := given(t, r.s)
			r.Stall()
			wait := after(func() error {
				claimed, err := r.s.Claim(t.Context(), worker, []string{jobType}, 1, aMinute)
				if len(claimed) > 0 {
					err = errors.New("a lease that the standby does not have")
				}
				return err
			})
			r.AwaitWaiting(t, 1)
			hit(t, r)
			require.ErrorIs(t, wait(), job.ErrOutcomeUnknown)
			// Whoever cancels the wait shows the lease to others.
			r.CancelWaiting(t)
			old := openAt(t, r.Primary)
			require.Eventually(t, func() bool { return ask[int](t, old, "select count(*) from leases") == 1 }, patience, time.Millisecond)
			lost := job.Lease{
				JobID: id, ID: ask[pgtype.UUID](t, old, "select lease_id from leases").Bytes, Fence: ask[int64](t, old, "select fence from leases"),
			}

			r.failOver(t)
			now := openAt(t, r.Standby)
			claimed := claim(t, now, 1)
			require.Len(t, claimed, 1)
			require.Equal(t, id, claimed[0].JobID)
			require.Equal(t, lost.Fence, claimed[0].Fence, "a number alone does not fence")
			require.NotEqual(t, lost.ID, claimed[0].ID)
			stale := as(claimed[0], job.Success)
			stale.Lease = lost
			require.Equal(t, []job.SettleResult{job.Lost}, settle(t, now, stale))
			held, err := now.Renew(t.Context(), worker, []job.Lease{lost}, nil, aMinute)
			require.NoError(t, err)
			require.Empty(t, held)
			settled(t, now, claimed[0], job.Success)
			require.Equal(t, []job.SettleResult{job.Lost}, settle(t, now, stale))
			requireState(t, now, id, job.Succeeded)
		})
	}
}
