// Package storetest opens the store of a test's database.
package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store"
)

// Open opens the store of a database whose server runs, with at most so many connections, until
// the test ends. On a machine that many tests share, the server may need longer for a new session
// than the store waits for one: Open tries again, as programs do when they start.
func Open(t testing.TB, url string, connections int32) *store.Store {
	t.Helper()
	const patience = 2 * time.Minute
	for began := time.Now(); ; {
		s, err := store.Open(t.Context(), store.Config{URL: url, MaxConnections: connections})
		if errors.Is(err, job.ErrUnavailable) && time.Since(began) < patience {
			continue
		}
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	}
}
