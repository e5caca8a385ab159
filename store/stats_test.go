package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestStatsSayHowThePoolsAreUsed(t *testing.T) {
	s, err := Open(t.Context(), Config{URL: pgtest.URL(t), MaxConnections: 3})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Renew(t.Context(), "nobody", nil, nil, time.Second)
	require.NoError(t, err)
	pools := s.Stats()
	names, most := make([]string, len(pools)), make([]int, len(pools))
	for i, pool := range pools {
		names[i], most[i] = pool.Name, pool.Max
		require.LessOrEqual(t, pool.Acquired+pool.Idle+pool.Opening, pool.Max)
		require.LessOrEqual(t, pool.Waits, pool.Acquires)
	}
	require.Equal(t, []string{"worker", "submission", "read", "heartbeat"}, names)
	require.Equal(t, []int{1, 1, 1, 2}, most)
	require.Positive(t, pools[3].Acquires)
}
