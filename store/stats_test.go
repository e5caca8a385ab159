package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

func TestStatsTellHowThePoolsAreUsed(t *testing.T) {
	s, err := Open(t.Context(), Config{URL: storetest.URL(t), MaxConnections: 3})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Renew(t.Context(), "nobody", nil, time.Second)
	require.NoError(t, err)
	pools := s.Stats()
	require.Len(t, pools, 2)
	work, heartbeat := pools[0], pools[1]
	require.Equal(t, []string{"work", "heartbeat"}, []string{work.Name, heartbeat.Name})
	require.Equal(t, []int{3, 2}, []int{work.Max, heartbeat.Max})
	require.Positive(t, heartbeat.Acquires)
	require.LessOrEqual(t, work.Waits, work.Acquires)
	for _, pool := range pools {
		require.LessOrEqual(t, pool.Acquired+pool.Idle+pool.Opening, pool.Max)
	}
}
