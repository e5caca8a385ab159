package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestWhoLogsNothingIsSettledWhileLogsAreSaved(t *testing.T) {
	saving, saved := make(chan struct{}, 10), make(chan struct{})
	settled := make(chan job.ID, 10)
	s, held := settling(t, &ledger{
		log: func([]job.Note) error {
			saving <- struct{}{}
			<-saved
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.Fate, error) {
			fates := make([]job.Fate, len(batch))
			for i, one := range batch {
				settled <- one.JobID
				fates[i] = job.Settled
			}
			return fates, nil
		},
	})
	loud, quiet := begun(s, held, 1), begun(s, held, 2)
	loud.Log(job.LogLine{Message: "one"})
	loud.Finished(job.Outcome{Kind: job.Success})
	<-saving
	quiet.Finished(job.Outcome{Kind: job.Success})
	require.Equal(t, quiet.claimed.JobID, <-settled)
	require.Empty(t, settled, "the last log of an attempt is saved before its end is")
	close(saved)
	require.Equal(t, loud.claimed.JobID, <-settled)
}

func TestTheLastLogOfAnAttemptIsSavedBeforeItsEndThoughAnEarlierOneIsUnderWay(t *testing.T) {
	saving, saved := make(chan string, 10), make(chan struct{}, 10)
	written := make(chan string, 10)
	s, held := settling(t, &ledger{
		log: func(batch []job.Note) error {
			lines := batch[0].Log.Lines
			saving <- lines[len(lines)-1].Message
			<-saved
			written <- lines[len(lines)-1].Message
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.Fate, error) {
			written <- string(batch[0].Kind)
			return []job.Fate{job.Settled}, nil
		},
	})
	a := begun(s, held, 1)
	a.Log(job.LogLine{Message: "first"})
	require.Equal(t, "first", <-saving)
	a.Log(job.LogLine{Message: "last"})
	a.Finished(job.Outcome{Kind: job.Success})
	saved <- struct{}{}
	saved <- struct{}{}
	for _, want := range []string{"first", "last", "succeeded"} {
		require.Equal(t, want, <-written)
	}
	require.Eventually(t, func() bool { _, all := held.counts(); return all == 0 }, patience, time.Millisecond)
	require.Empty(t, s.logs.pages)
}

func TestOneStatementSavesSoManyLogsAndThoseOfTheEndedFirst(t *testing.T) {
	l := newLogbook(nil, nil)
	note := func(id, lines int) job.Note {
		return job.Note{
			Lease: job.Lease{ID: job.LeaseID{byte(id), byte(id >> 8)}},
			Log:   &job.AttemptLog{Lines: make([]job.LogLine, lines)},
		}
	}
	for i := range 3 * logsAtOnce / 2 {
		l.keep(note(i, 1))
	}
	last := note(1000, 1)
	l.keep(last)
	l.end(&end{settlement: job.Settlement{Lease: last.Lease}})
	l.keep(note(1, 2)) // in place of what it had before
	_, first, urgent := l.take()
	require.True(t, urgent)
	require.Len(t, first, logsAtOnce)
	require.Equal(t, last.ID, first[0].ID)
	require.Len(t, first[2].Log.Lines, 2)
	_, second, urgent := l.take()
	require.False(t, urgent)
	require.Len(t, second, logsAtOnce/2+1)

	for i := range 3 {
		l.keep(note(i, logLinesAtOnce*2/3))
	}
	for range 3 {
		_, one, _ := l.take()
		require.Len(t, one, 1, "so many lines")
	}
	for i := range 3 {
		long := note(i, 1)
		long.Log.Lines[0].Message = strings.Repeat("x", 2*logBytesAtOnce)
		l.keep(long)
	}
	for range 3 {
		_, one, _ := l.take()
		require.Len(t, one, 1, "so many bytes, but never none")
	}
}
