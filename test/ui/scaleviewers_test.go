package ui

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

const (
	viewers = 10
	// refresh is how often a tab asks, and the least time from one reading of the figures to the next.
	refresh = 2 * time.Second
)

// view polls the overview as so many tabs do, until done is closed, and then returns how often.
func (s *scene) view(t *testing.T, tabs int, every time.Duration, done <-chan struct{}) (wait func() int) {
	t.Helper()
	polls := make([]int, tabs)
	var open sync.WaitGroup
	for i := range tabs {
		in := s.operator(t)
		open.Go(func() {
			asked := http.Header{"Hf-Fragment": {"live-overview"}}
			for {
				status, header, text := in.send(http.MethodGet, "/ui/", nil, asked)
				if status != http.StatusOK && status != http.StatusNotModified {
					t.Errorf("%d %s", status, text)
					return
				}
				asked.Set("If-None-Match", header.Get("Etag"))
				polls[i]++
				select {
				case <-done:
					return
				case <-time.After(every):
				}
			}
		})
	}
	return func() (all int) {
		open.Wait()
		for _, n := range polls {
			all += n
		}
		return all
	}
}

// readings is how often the figures were read so far: each time, metrics_attempts.sql reads a
// table that nothing else reads while no jobs are worked. A session of the server counts after a
// while.
func readings(t *testing.T, db *pgx.Conn) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), "select seq_scan + coalesce(idx_scan, 0) from pg_stat_user_tables where relname = 'tally_attempts'").Scan(&n))
	return n
}

func TestTenTabsCostOneReadingARefresh(t *testing.T) {
	s, db := amongMany(t)
	before := readings(t, db)
	began, done := time.Now(), make(chan struct{})
	polled := s.view(t, viewers, 50*time.Millisecond, done)
	<-time.After(5 * refresh)
	close(done)
	polls := polled()
	most := int(time.Since(began)/refresh) + 1
	var read int
	require.Eventually(t, func() bool { read = readings(t, db) - before; return read > 0 }, patience, glance, "the figures are read")
	t.Logf("%d polls of %d tabs in %s cost %d readings", polls, viewers, time.Since(began).Round(time.Second), read)
	require.LessOrEqual(t, read, most)
	require.Greater(t, polls, 2*most, "they asked more often")
}
