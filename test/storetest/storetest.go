// Package storetest opens the store of a test's database.
package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// Open opens the store of a database whose server runs, and closes it when the test ends. It has
// at most so many connections. On a machine that many tests share, the server may need longer for a
// new session than the store waits for one, so Open tries again until each pool has had a session.
func Open(t testing.TB, url string, connections int32) *store.Store {
	t.Helper()
	var s *store.Store
	patiently(t, func() (err error) {
		s, err = store.Open(t.Context(), store.Config{URL: url, MaxConnections: connections})
		return err
	})
	t.Cleanup(s.Close)
	patiently(t, func() error {
		_, _, err := s.Rules(t.Context())
		return err
	})
	patiently(t, func() error {
		_, err := s.Schedules(t.Context(), job.ScheduleFilter{Limit: 1})
		return err
	})
	return s
}

// patiently tries again while the database is not available.
func patiently(t testing.TB, try func() error) {
	t.Helper()
	const (
		patience = 2 * time.Minute
		pause    = 250 * time.Millisecond
	)
	began := time.Now()
	err := try()
	for ; errors.Is(err, job.ErrUnavailable) && time.Since(began) < patience; err = try() {
		t.Logf("after %s, once more: %v", time.Since(began), err)
		loop.Pause(t.Context(), pause)
	}
	require.NoError(t, err)
}
