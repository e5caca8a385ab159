package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// However short its time is, a preview examines some jobs, and says where to go on.
func TestACountWithoutTimeGoesOnWhereItStopped(t *testing.T) {
	s := open(t)
	const dead = 2*leastStretch + 5
	fill(t, s, job.Dead, dead, "COMMON")
	for _, table := range []string{"jobs", "dead_letters"} {
		exec(t, s, "update "+table+" set job_id = overlay(job_id::text placing '00000000' from 1)::uuid") // of the past
	}
	filter := job.Filter{States: []job.State{job.Dead}, Type: "COMMON", Within: time.Nanosecond}
	for _, filter.Tag = range []string{"", "none"} {
		var counts []int
		var at time.Time
		for {
			preview, err := s.PreviewOperation(t.Context(), filter)
			require.NoError(t, err)
			counts = append(counts, preview.Count.Jobs)
			require.Equal(t, preview.Next != job.ID{}, preview.Count.More)
			require.Equal(t, filter.Tag == "" && filter.After == job.ID{}, len(preview.Samples) == previewSamples, "only the first has samples")
			if at.IsZero() {
				at = preview.At
			}
			require.Equal(t, at, preview.At)
			if filter.FrozenAt, filter.After = preview.At, preview.Next; !preview.Count.More {
				break
			}
		}
		want := []int{leastStretch, leastStretch, 5}
		if filter.Tag != "" {
			want = []int{0, 0, 0}
		}
		require.Equal(t, want, counts)
		filter.After, filter.FrozenAt = job.ID{}, time.Time{}
	}
	filter.Tag, filter.Limit = "", dead
	all, pages := listed(t, s, filter)
	require.Len(t, all, dead)
	require.Equal(t, 3, pages)
	filter.Within = time.Hour
	preview, err := s.PreviewOperation(t.Context(), filter)
	require.NoError(t, err)
	require.Equal(t, job.Count{Jobs: dead}, preview.Count)
}
