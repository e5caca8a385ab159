package report

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/internal/loop"
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

// page is that of an attempt.
func (r *Recorder) page(plugin string, id int) *page { return r.Attempt(plugin, lease(id), 1).page }

func lease(id int) job.Lease {
	return job.Lease{ID: job.LeaseID{byte(id), byte(id >> 8)}}
}

func TestAnAttemptThatReportsWithoutPauseIsWrittenOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		r := record(t.Context(), interval)
		page := r.page("p", 1)
		began := time.Now()
		for i := range 20_000 {
			require.Nil(t, page.keep(job.Report{Progress: fmt.Append(nil, i), Checkpoint: fmt.Append(nil, -i)}))
			if i%10 == 9 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		}
		written := r.writes()
		require.LessOrEqual(t, written, int(time.Since(began)/interval)+1)
		require.GreaterOrEqual(t, written, 8, "and no less often")
		page.end()
		require.False(t, page.isSaved())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		after := r.writes()
		require.Equal(t, written+1, after, "the end does not wait for the interval")
		require.True(t, page.isSaved())
		require.Len(t, r.saved, 1)
		last := r.batches[after-1][0]
		require.Equal(t, "19999/-19999", string(last.Progress)+"/"+string(last.Checkpoint))
	})
}

func TestTheLastReportIsWrittenAfterTheIntervalEvenIfNoneFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t.Context(), time.Minute)
		page := r.page("p", 1)
		page.keep(job.Report{Progress: []byte("1")})
		time.Sleep(time.Second)
		page.keep(job.Report{Progress: []byte("2")})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		written := r.writes()
		require.Equal(t, 2, written)
		require.Equal(t, "2", string(r.batches[1][0].Progress))
		require.False(t, page.book.writing, "nobody waits for more")
		require.Zero(t, page.book.bytes)
	})
}

func TestAPluginIsNotReadWhileTooManyOfItsReportsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s := NewRecorder(t.Context(), 0, func([]job.Report) { <-free }, loop.NewSignal())
		value := make([]byte, 1<<20)
		var room <-chan struct{}
		pages := 0
		for ; room == nil; pages++ {
			room = s.page("greedy", pages).keep(job.Report{Checkpoint: value})
			require.LessOrEqual(t, pages, unsavedInAll/minShares>>20)
		}
		require.Nil(t, s.page("other", 0).keep(job.Report{Checkpoint: value}), "another plugin has its own share")
		require.NotNil(t, s.page("greedy", pages).keep(job.Report{Progress: []byte("1")}))
		close(free)
		<-room
		synctest.Wait()
		require.Nil(t, s.page("greedy", 0).keep(job.Report{Progress: []byte("1")}))
		require.Zero(t, s.book("other").bytes)
		s.Close()
	})
}

func TestPluginsShareOneLimitOfWaitingReports(t *testing.T) {
	s := NewRecorder(t.Context(), 0, nil, nil)
	for i := range 16 {
		s.book(fmt.Sprint(i))
	}
	require.Equal(t, unsavedInAll/16, s.share())
}

func TestAnAttemptCountsAsSavedAfterTheRecorderIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := record(ctx, time.Hour)
		first, second, third := r.page("p", 1), r.page("p", 2), r.page("p", 3)
		first.keep(job.Report{Progress: []byte("1")})
		synctest.Wait()
		time.Sleep(time.Second)
		first.keep(job.Report{Progress: []byte("2")})
		cancel()
		second.keep(job.Report{Progress: []byte("1")})
		second.end()
		r.Close()
		third.keep(job.Report{Progress: []byte("1")})
		third.end()
		require.True(t, second.isSaved())
		require.True(t, third.isSaved())
	})
}

func TestOneStatementSavesABoundedNumberOfReportsThoseOfEndedAttemptsFirst(t *testing.T) {
	s := NewRecorder(t.Context(), 0, nil, nil)
	s.closed = true // nobody writes
	b := s.book("p")
	take := func() ([]taken, bool) {
		batch, urgent, _ := b.take(time.Now(), false)
		return batch, urgent
	}
	log := func(lines int) job.Report { return job.Report{Log: &job.AttemptLog{Lines: make([]job.LogLine, lines)}} }
	pages := make([]*page, 3*maxReports/2+1)
	for i := range pages {
		pages[i] = s.page("p", i)
		pages[i].keep(log(1))
	}
	last := pages[len(pages)-1]
	last.hasEnded = true
	b.ending = append(b.ending, last)
	pages[1].keep(log(2)) // in place of what it had before
	first, urgent := take()
	require.True(t, urgent)
	require.Len(t, first, maxReports)
	require.Equal(t, last, first[0].page)
	require.Len(t, first[2].report.Log.Lines, 2)
	second, urgent := take()
	require.False(t, urgent)
	require.Len(t, second, maxReports/2+1)

	for i := range 3 {
		pages[i].keep(log(maxLogLinesAll * 2 / 3))
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many lines")
	}
	for i := range 3 {
		pages[i].keep(job.Report{Checkpoint: []byte(strings.Repeat("x", 2*maxBytes))})
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many bytes, but never none")
	}
}
