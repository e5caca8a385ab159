package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheConfigurationLeavesSchedulesOfOthersAlone(t *testing.T) {
	s := open(t)
	ours := hourly(t, s, "ours", func(one *job.Schedule) { one.Overlap = job.OverlapSkip })
	sync := func(schedules ...job.Schedule) []job.ScheduleChange {
		t.Helper()
		changed, err := s.SyncSchedules(t.Context(), schedules)
		require.NoError(t, err)
		return changed
	}
	taken, added := ours, ours
	taken.Overlap, added.Name = job.OverlapAllow, "new"
	require.ElementsMatch(t, []job.ScheduleChange{
		{Tenant: ours.Tenant, Name: "ours", Done: job.ScheduleKept},
		{Tenant: ours.Tenant, Name: "new", Done: job.ScheduleSet},
	}, sync(taken, added))
	found, err := s.Schedule(t.Context(), ours.Tenant, "ours")
	require.NoError(t, err)
	require.Equal(t, job.OverlapSkip, found.Overlap)
	require.False(t, found.Configured)

	require.Equal(t, []job.ScheduleChange{{Tenant: ours.Tenant, Name: "new", Done: job.ScheduleDeleted}}, sync())
	_, err = s.Schedule(t.Context(), ours.Tenant, "ours")
	require.NoError(t, err)
}
