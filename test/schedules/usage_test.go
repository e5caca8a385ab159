package schedules

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// processTime is the CPU time of a process so far, to 10 ms.
func processTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), ") ")
	require.True(t, found)
	fields := strings.Fields(after)
	const user, system, perSecond = 11, 12, 100
	ticks := 0
	for _, at := range []int{user, system} {
		n, err := strconv.Atoi(fields[at])
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}

// backendTime is that of the sessions of the orchestrator.
func backendTime(t *testing.T, db *database) (total time.Duration) {
	t.Helper()
	rows, err := db.pool.Query(t.Context(), `select pid from pg_stat_activity where datname = current_database() and application_name like 'holdfast %'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var pid int
		require.NoError(t, rows.Scan(&pid))
		total += processTime(t, pid)
	}
	require.NoError(t, rows.Err())
	return total
}
