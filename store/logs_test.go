package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// logNote is a note with a log of these lines.
func logNote(lease job.Lease, number int, messages ...string) job.Report {
	log := &job.AttemptLog{Number: number, Fence: lease.Fence}
	for _, text := range messages {
		log.Lines = append(log.Lines, job.LogLine{Level: job.LogInfo, Message: text})
	}
	return job.Report{Lease: lease, Log: log}
}

func keepLogs(t testing.TB, s *Store, batch ...job.Report) []job.Lease {
	t.Helper()
	lost, err := s.SaveLogs(t.Context(), batch)
	require.NoError(t, err)
	return lost
}

func logsOf(t testing.TB, s *Store, id job.ID, filter job.LogFilter) []job.AttemptLog {
	t.Helper()
	logs, err := s.Logs(t.Context(), id, filter)
	require.NoError(t, err)
	return logs
}

func TestALogIsKeptToTheLetter(t *testing.T) {
	s := open(t)
	c := running(t, s)
	log := job.AttemptLog{Number: 1, Fence: 1, Dropped: 1 << 40, Lines: []job.LogLine{
		{Time: time.Date(2026, 2, 20, 9, 30, 0, 123_456_789, time.UTC), Level: job.LogError, Message: "\x00\x1b[2J <é> \u2028"},
		{Level: job.LogDebug, Attributes: []byte(`{"n":1e400,"z":"\\u0000","deep":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`), Truncated: true},
	}}
	require.Empty(t, keepLogs(t, s, job.Report{Lease: c.Lease, Log: &log}))
	got := logsOf(t, s, c.JobID, job.LogFilter{Limit: 1})
	require.Len(t, got, 1)
	require.Equal(t, log, got[0])
}

func TestALogReplacesThePreviousOne(t *testing.T) {
	s := open(t)
	c, other := running(t, s), running(t, s)
	require.Empty(t, keepLogs(t, s, logNote(c.Lease, 1, "a"), logNote(other.Lease, 1, "o")))
	require.Empty(t, keepLogs(t, s, logNote(c.Lease, 1, "a", "b")))
	require.Len(t, logsOf(t, s, c.JobID, job.LogFilter{Limit: 9})[0].Lines, 2)
	require.Len(t, logsOf(t, s, other.JobID, job.LogFilter{Limit: 9})[0].Lines, 1)
	require.Empty(t, keepLogs(t, s))
}

func TestLogsOfAStrangerAreLost(t *testing.T) {
	s := open(t)
	held, finished, taken := running(t, s), running(t, s), running(t, s)
	keepLogs(t, s, logNote(finished.Lease, 1, "in time"))
	settled(t, s, finished, job.Success)
	expire(t, s, taken.Lease)
	current := reap(t, s, 1)[0].Lease

	lost := keepLogs(t, s, logNote(held.Lease, 1, "held"), logNote(finished.Lease, 1, "late"), logNote(taken.Lease, 1, "stale"))
	require.ElementsMatch(t, []job.Lease{finished.Lease, taken.Lease}, lost)
	require.Equal(t, "in time", logsOf(t, s, finished.JobID, job.LogFilter{Limit: 1})[0].Lines[0].Message)
	require.Empty(t, logsOf(t, s, taken.JobID, job.LogFilter{Limit: 1}))
	require.Empty(t, keepLogs(t, s, logNote(current, 1, "the reaper's")))
}

func TestTheLatestLogsAreShownOldestFirst(t *testing.T) {
	s := open(t)
	c := running(t, s)
	for fence := range int64(5) {
		exec(t, s, "insert into attempt_logs (job_id, fence, attempt, lines, dropped) values ($1, $2, $3, '[]', 0)",
			postgres.UUID(c.JobID), fence+1, fence/2+1)
	}
	shown := func(filter job.LogFilter) (fences []string) {
		for _, log := range logsOf(t, s, c.JobID, filter) {
			fences = append(fences, fmt.Sprintf("%d/%d", log.Number, log.Fence))
		}
		return fences
	}
	require.Equal(t, []string{"2/3", "2/4", "3/5"}, shown(job.LogFilter{Limit: 3}))
	require.Equal(t, []string{"1/1", "1/2"}, shown(job.LogFilter{Number: 1, Limit: 3}))
	require.Equal(t, []string{"1/2"}, shown(job.LogFilter{Number: 1, Limit: 1}))
	require.Empty(t, shown(job.LogFilter{Number: 9, Limit: 1}))
	require.Empty(t, logsOf(t, s, job.ID{}, job.LogFilter{Limit: 1}))
}

func TestALogThatCannotBeStoredIsBadDataAndWritesNothing(t *testing.T) {
	s := open(t)
	good, bad := running(t, s), running(t, s)
	for _, text := range []string{`{`, "\"\x00\"", "\"\xff\""} {
		broken := logNote(bad.Lease, 1, "m")
		broken.Log.Lines[0].Attributes = []byte(text)
		_, err := s.SaveLogs(t.Context(), []job.Report{logNote(good.Lease, 1, "m"), broken})
		require.ErrorIs(t, err, job.ErrBadData)
	}
	require.Empty(t, logsOf(t, s, good.JobID, job.LogFilter{Limit: 1}))
}
