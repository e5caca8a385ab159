package ui

import (
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// cpuTime is what the orchestrator, its plugins and PostgreSQL have used so far.
func (s *scene) cpuTime(t *testing.T, db *pgx.Conn) (orchestrator, postgres time.Duration) {
	t.Helper()
	var backend int
	require.NoError(t, db.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&backend))
	postmaster, err := rig.Parent(backend)
	require.NoError(t, err)
	orchestrator, known := rig.CPUTime(s.PID())
	require.True(t, known)
	postgres, known = rig.CPUTime(postmaster)
	require.True(t, known)
	return orchestrator, postgres
}

// TestViewersCostLittleProcessorTime takes turns with viewers and without, while no jobs are
// worked. Claims need the processors, so viewers can slow them down by no more than what they
// take of these.
func TestViewersCostLittleProcessorTime(t *testing.T) {
	if !millions {
		t.Skip("it measures: make ui-scale")
	}
	const pairs, turn = 3, time.Minute // in which slow figures are read twice
	s, db := amongMany(t)
	<-time.After(turn) // the start is over
	var orchestrator, postgres time.Duration
	for range pairs {
		for _, sign := range []time.Duration{-1, 1} {
			done := make(chan struct{})
			wait := func() int { return 0 }
			if sign > 0 {
				wait = s.view(t, viewers, refresh, done)
			}
			ownBefore, databaseBefore := s.cpuTime(t, db)
			<-time.After(turn)
			own, database := s.cpuTime(t, db)
			close(done)
			wait()
			own, database = own-ownBefore, database-databaseBefore
			orchestrator += sign * own
			postgres += sign * database
			t.Logf("%+d: orchestrator %s, PostgreSQL %s", sign, own, database)
		}
	}
	all := float64(runtime.NumCPU()) * (pairs * turn).Seconds()
	share := (orchestrator + postgres).Seconds() / all
	t.Logf("%d viewers took %s of the orchestrator and %s of PostgreSQL in %s on %d processors: %.2f %%",
		viewers, orchestrator, postgres, pairs*turn, runtime.NumCPU(), 100*share)
	require.Less(t, share, 0.02)
}
