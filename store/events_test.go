package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func allEnds() job.EventLog { return job.EventLog{Keep: time.Hour, Most: 1_000_000} }

func eventsAfter(t testing.TB, s *Store, after int64, limit int) job.EventPage {
	t.Helper()
	page, err := s.NewEvents(t.Context(), after, limit)
	require.NoError(t, err)
	other, err := s.OldEvents(t.Context(), after, limit)
	require.NoError(t, err)
	require.Equal(t, page, other)
	return page
}

func eventIDs(page job.EventPage) (ids []int64) {
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestEndsAreRecordedAsEventsInOrder(t *testing.T) {
	s := open(t)
	plan := job.FollowPlan{Events: allEnds()}
	require.Equal(t, job.EventPage{}, eventsAfter(t, s, 0, 10))
	c := running(t, s, followed, func(j *job.Submission) { j.Tenant, j.Tags = "acme", []string{"blue", `a "tag"`} })
	settled(t, s, c, job.PermanentFailure)
	died := *get(t, s, c.JobID).FinishedAt
	_, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	settled(t, s, claim(t, s, 1)[0], job.Success)
	require.Equal(t, 2, followAs(t, s, plan).Recorded)
	settled(t, s, running(t, s, followed), job.Success)
	require.Equal(t, 1, followAs(t, s, plan).Recorded)
	require.Zero(t, followAs(t, s, plan).Recorded)

	page := eventsAfter(t, s, 0, 10)
	require.Equal(t, []int64{1, 2, 3}, eventIDs(page))
	require.EqualValues(t, 3, page.Last)
	first := page.Events[0]
	require.True(t, died.Equal(first.At))
	first.At = died
	require.Equal(t, job.Event{ID: 1, At: died, JobID: c.JobID, Type: jobType, Tenant: "acme", Tags: []string{"blue", `a "tag"`}, State: job.Dead}, first)
	require.Equal(t, job.Succeeded, page.Events[1].State)
	require.Empty(t, page.Events[2].Tags)

	page = eventsAfter(t, s, 1, 1)
	require.Equal(t, []int64{2}, eventIDs(page))
	require.EqualValues(t, 3, page.Last)
	require.Equal(t, job.EventPage{Last: 3}, eventsAfter(t, s, 3, 1))
}

func TestOnlySomeEndsAreRecorded(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, followed), job.Success)
	require.Zero(t, followAs(t, s, job.FollowPlan{}).Recorded, "off")
	settled(t, s, running(t, s, followed), job.Success)
	log := allEnds()
	log.Types = []string{"OTHER"}
	require.Zero(t, followAs(t, s, job.FollowPlan{Events: log}).Recorded)
	require.False(t, allEnds().Records(job.DeliveryType))
	require.Equal(t, job.EventPage{}, eventsAfter(t, s, 0, 1))
}

func TestOldEventsAreForgottenFromTheBeginning(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into events select i, now() - interval '1 day', gen_random_uuid(), 'T', 'default', '{}', 'succeeded', now() - (10 - i) * interval '1 minute' from generate_series(1, 10) i`)
	exec(t, s, "update last_event set id = 10")
	forget := func(log job.EventLog, limit int) int {
		t.Helper()
		deleted, err := s.ForgetEvents(t.Context(), log, limit)
		require.NoError(t, err)
		return deleted
	}
	require.Zero(t, forget(allEnds(), 5))
	old := job.EventLog{Keep: 7*time.Minute + 30*time.Second, Most: 1000}
	require.Equal(t, 1, forget(old, 1), "a portion")
	require.Equal(t, 1, forget(old, 5))
	require.Zero(t, forget(old, 5))
	require.Equal(t, []int64{3, 4, 5, 6, 7, 8, 9, 10}, eventIDs(eventsAfter(t, s, 0, 100)))
	require.Equal(t, 5, forget(job.EventLog{Keep: time.Hour, Most: 3}, 100), "too many")
	require.Equal(t, []int64{8, 9, 10}, eventIDs(eventsAfter(t, s, 0, 100)))

	exec(t, s, "update events set recorded_at = now() - interval '2 hours' where id <> 9")
	require.Equal(t, 1, forget(allEnds(), 100), "no gap behind one that is kept")
	exec(t, s, "update events set recorded_at = now() - interval '2 hours'")
	require.Equal(t, 2, forget(allEnds(), 100))
	require.Equal(t, job.EventPage{Last: 10}, eventsAfter(t, s, 0, 100), "the count goes on")
}

// Readers rely on it: what has a lower id than something visible is visible.
func TestIdsBecomeVisibleInOrderWithoutGaps(t *testing.T) {
	s := open(t)
	ids := submit(t, s, submissions(t, 300, followed)...)
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Follow(context.Background(), job.FollowPlan{Events: allEnds()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Go(func() {
		for _, id := range ids {
			if _, err := s.Cancel(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
	})
	var seen []int64
	require.Eventually(t, func() bool {
		page, err := s.NewEvents(t.Context(), int64(len(seen)), 7)
		require.NoError(t, err)
		seen = append(seen, eventIDs(page)...)
		return len(seen) == len(ids)
	}, aMinute, time.Millisecond)
	stop()
	work.Wait()
	require.True(t, slices.IsSorted(seen))
	for i, id := range seen {
		require.EqualValues(t, i+1, id)
	}
}
