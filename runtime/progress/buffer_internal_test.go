package progress

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// recording is a recorder whose writes are recorded.
type recording struct {
	*Recorder
	mu      sync.Mutex
	batches [][]job.Report
}

func record(ctx context.Context, interval time.Duration) *recording {
	r := &recording{}
	r.Recorder = NewRecorder(ctx, interval, func(reports []job.Report) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.batches = append(r.batches, reports)
		time.Sleep(time.Millisecond)
	}, loop.NewSignal())
	return r
}

func (r *recording) writes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.batches)
}

// attempt is one of the plugin.
func (r *Recorder) attempt(plugin string, id int) *Attempt { return r.Attempt(plugin, lease(id), 1) }

func lease(id int) job.Lease {
	return job.Lease{ID: job.LeaseID{byte(id), byte(id >> 8)}}
}

func TestAnAttemptThatReportsWithoutPauseIsWrittenOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		r := record(t.Context(), interval)
		attempt := r.attempt("p", 1)
		began := time.Now()
		for i := range 20_000 {
			require.Nil(t, attempt.keep(job.Report{Progress: fmt.Append(nil, i), Checkpoint: fmt.Append(nil, -i)}))
			if i%10 == 9 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		}
		written := r.writes()
		require.LessOrEqual(t, written, int(time.Since(began)/interval)+1)
		require.GreaterOrEqual(t, written, 8, "and no less often")
		attempt.End()
		require.False(t, attempt.Saved())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		after := r.writes()
		require.Equal(t, written+1, after, "the end does not wait for the interval")
		require.True(t, attempt.Saved())
		require.Len(t, r.saved, 1)
		last := r.batches[after-1][0]
		require.Equal(t, "19999/-19999", string(last.Progress)+"/"+string(last.Checkpoint))
	})
}

func TestTheLastReportIsWrittenAfterTheIntervalEvenIfNoneFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t.Context(), time.Minute)
		attempt := r.attempt("p", 1)
		attempt.keep(job.Report{Progress: []byte("1")})
		time.Sleep(time.Second)
		attempt.keep(job.Report{Progress: []byte("2")})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		written := r.writes()
		require.Equal(t, 2, written)
		require.Equal(t, "2", string(r.batches[1][0].Progress))
		require.False(t, attempt.buffer.writing, "nobody waits for more")
		require.Zero(t, attempt.buffer.bytes)
	})
}

func TestAPluginIsNotReadWhileTooManyOfItsReportsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s := NewRecorder(t.Context(), 0, func([]job.Report) { <-free }, loop.NewSignal())
		value := make([]byte, 1<<20)
		var room <-chan struct{}
		attempts := 0
		for ; room == nil; attempts++ {
			room = s.attempt("greedy", attempts).keep(job.Report{Checkpoint: value})
			require.LessOrEqual(t, attempts, unsavedInAll/minShares>>20)
		}
		require.Nil(t, s.attempt("other", 0).keep(job.Report{Checkpoint: value}), "another plugin has its own share")
		require.NotNil(t, s.attempt("greedy", attempts).keep(job.Report{Progress: []byte("1")}))
		close(free)
		<-room
		synctest.Wait()
		require.Nil(t, s.attempt("greedy", 0).keep(job.Report{Progress: []byte("1")}))
		require.Zero(t, s.buffer("other").bytes)
		s.Close()
	})
}

func TestPluginsShareOneLimitOfWaitingReports(t *testing.T) {
	s := NewRecorder(t.Context(), 0, nil, nil)
	for i := range 16 {
		s.buffer(fmt.Sprint(i))
	}
	require.Equal(t, unsavedInAll/16, s.share())
}

func TestAnAttemptCountsAsSavedAfterTheRecorderIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := record(ctx, time.Hour)
		first, second, third := r.attempt("p", 1), r.attempt("p", 2), r.attempt("p", 3)
		first.keep(job.Report{Progress: []byte("1")})
		synctest.Wait()
		time.Sleep(time.Second)
		first.keep(job.Report{Progress: []byte("2")})
		cancel()
		second.keep(job.Report{Progress: []byte("1")})
		second.End()
		r.Close()
		third.keep(job.Report{Progress: []byte("1")})
		third.End()
		require.True(t, second.Saved())
		require.True(t, third.Saved())
	})
}

func TestOneStatementSavesABoundedNumberOfReportsThoseOfEndedAttemptsFirst(t *testing.T) {
	s := NewRecorder(t.Context(), 0, nil, nil)
	s.closed = true // nobody writes
	b := s.buffer("p")
	take := func() ([]taken, bool) {
		batch, urgent, _ := b.take(time.Now(), false)
		return batch, urgent
	}
	log := func(lines int) job.Report { return job.Report{Log: &job.AttemptLog{Lines: make([]job.LogLine, lines)}} }
	attempts := make([]*Attempt, 3*maxReports/2+1)
	for i := range attempts {
		attempts[i] = s.attempt("p", i)
		attempts[i].keep(log(1))
	}
	last := attempts[len(attempts)-1]
	last.hasEnded = true
	b.ending = append(b.ending, last)
	attempts[1].keep(log(2)) // in place of what it had before
	first, urgent := take()
	require.True(t, urgent)
	require.Len(t, first, maxReports)
	require.Equal(t, last, first[0].attempt)
	require.Len(t, first[2].report.Log.Lines, 2)
	second, urgent := take()
	require.False(t, urgent)
	require.Len(t, second, maxReports/2+1)

	for i := range 3 {
		attempts[i].keep(log(maxLogLinesAll * 2 / 3))
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many lines")
	}
	for i := range 3 {
		attempts[i].keep(job.Report{Checkpoint: []byte(strings.Repeat("x", 2*maxBytes))})
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many bytes, but never none")
	}
}
