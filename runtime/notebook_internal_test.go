package runtime

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestWhoReportsNothingIsSettledWhileNotesAreSaved(t *testing.T) {
	saving, saved := make(chan struct{}, 10), make(chan struct{})
	settled := make(chan job.ID, 10)
	block := func([]job.Report) error {
		saving <- struct{}{}
		<-saved
		return nil
	}
	s, held := settling(t, &ledger{
		log: block, note: block,
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			fates := make([]job.SettleResult, len(batch))
			for i, one := range batch {
				settled <- one.JobID
				fates[i] = job.Settled
			}
			return fates, nil
		},
	})
	loud, telling, quiet := begun(s, held, 1), begun(s, held, 2), begun(s, held, 3)
	loud.pool.Plugin, telling.pool.Plugin = "loud", "telling"
	loud.Log(job.LogLine{Message: "one"})
	loud.Finished(job.Outcome{Kind: job.Success})
	telling.Progress([]byte("1"))
	telling.Finished(job.Outcome{Kind: job.Success})
	<-saving
	<-saving // neither plugin waits for the other
	quiet.Finished(job.Outcome{Kind: job.Success})
	require.Equal(t, quiet.claimed.JobID, <-settled)
	require.Empty(t, settled, "what an attempt has reported is saved before its end is")
	close(saved)
	require.ElementsMatch(t, []job.ID{loud.claimed.JobID, telling.claimed.JobID}, []job.ID{<-settled, <-settled})
}

func TestTheLastLogOfAnAttemptIsSavedBeforeItsEndThoughAnEarlierOneIsUnderWay(t *testing.T) {
	saving, saved := make(chan string, 10), make(chan struct{}, 10)
	written := make(chan string, 10)
	s, held := settling(t, &ledger{
		log: func(batch []job.Report) error {
			lines := batch[0].Log.Lines
			saving <- lines[len(lines)-1].Message
			<-saved
			written <- lines[len(lines)-1].Message
			return nil
		},
		settle: func(batch []job.Settlement) ([]job.SettleResult, error) {
			written <- string(batch[0].Kind)
			return []job.SettleResult{job.Settled}, nil
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
}

func TestAnEndWaitsForWhatIsJustBeingSaved(t *testing.T) {
	saving, saved := make(chan struct{}), make(chan struct{})
	settled := make(chan struct{}, 1)
	s, held := settling(t, &ledger{
		note: func([]job.Report) error {
			saving <- struct{}{}
			<-saved
			return nil
		},
		settle: func([]job.Settlement) ([]job.SettleResult, error) {
			settled <- struct{}{}
			return []job.SettleResult{job.Settled}, nil
		},
	})
	a := begun(s, held, 1)
	a.Checkpoint([]byte("1"))
	<-saving
	a.Finished(job.Outcome{Kind: job.Failure})
	other := begun(s, held, 2)
	other.pool.Plugin = "other"
	other.Finished(job.Outcome{Kind: job.Success})
	<-settled
	require.Empty(t, settled)
	close(saved)
	<-settled
}

// recorder is a shelf whose writes are recorded.
type recorder struct {
	*shelf
	mu      sync.Mutex
	batches [][]job.Report
	settled []*end
}

func record(ctx context.Context, interval time.Duration) *recorder {
	r := &recorder{}
	r.shelf = newShelf(ctx, interval, func(notes []job.Report) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.batches = append(r.batches, notes)
		time.Sleep(time.Millisecond)
	}, func(e *end) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled = append(r.settled, e)
	})
	return r
}

func (r *recorder) counts() (batches, settled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.batches), len(r.settled)
}

func lease(id int) job.Lease {
	return job.Lease{ID: job.LeaseID{byte(id), byte(id >> 8)}}
}

func TestAnAttemptThatReportsWithoutPauseIsWrittenOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		r := record(t.Context(), interval)
		page := r.book("p").page(lease(1))
		began := time.Now()
		for i := range 20_000 {
			require.Nil(t, page.keep(job.Report{Progress: fmt.Append(nil, i), Checkpoint: fmt.Append(nil, -i)}))
			if i%10 == 9 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
			}
		}
		written, _ := r.counts()
		require.LessOrEqual(t, written, int(time.Since(began)/interval)+1)
		require.GreaterOrEqual(t, written, 8, "and no less often")
		page.finish(&end{})
		time.Sleep(time.Millisecond)
		synctest.Wait()
		after, settled := r.counts()
		require.Equal(t, written+1, after, "the end does not wait for the interval")
		require.Equal(t, 1, settled)
		last := r.batches[after-1][0]
		require.Equal(t, "19999/-19999", string(last.Progress)+"/"+string(last.Checkpoint))
	})
}

func TestWhatCameLastIsWrittenAfterTheIntervalThoughNothingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t.Context(), time.Minute)
		page := r.book("p").page(lease(1))
		page.keep(job.Report{Progress: []byte("1")})
		time.Sleep(time.Second)
		page.keep(job.Report{Progress: []byte("2")})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		written, _ := r.counts()
		require.Equal(t, 2, written)
		require.Equal(t, "2", string(r.batches[1][0].Progress))
		require.False(t, page.book.writing, "nobody waits for more")
		require.Zero(t, page.book.bytes)
	})
}

func TestAPluginIsHeardNoFurtherWhileTooMuchOfItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s := newShelf(t.Context(), 0, func([]job.Report) { <-free }, nil)
		value := make([]byte, 1<<20)
		var room <-chan struct{}
		pages := 0
		for ; room == nil; pages++ {
			room = s.book("greedy").page(lease(pages)).keep(job.Report{Checkpoint: value})
			require.LessOrEqual(t, pages, unsavedInAll/minShares>>20)
		}
		require.Nil(t, s.book("other").page(lease(0)).keep(job.Report{Checkpoint: value}), "another plugin has its own share")
		require.NotNil(t, s.book("greedy").page(lease(pages)).keep(job.Report{Progress: []byte("1")}))
		close(free)
		<-room
		synctest.Wait()
		require.Nil(t, s.book("greedy").page(lease(0)).keep(job.Report{Progress: []byte("1")}))
		require.Zero(t, s.book("other").bytes)
		s.close()
	})
}

func TestManyPluginsShareWhatAllMayHold(t *testing.T) {
	s := newShelf(t.Context(), 0, nil, nil)
	for i := range 16 {
		s.book(fmt.Sprint(i))
	}
	require.Equal(t, unsavedInAll/16, s.share())
}

func TestEndsAreHandedOnWhenNothingIsSavedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := record(ctx, time.Hour)
		first, second, third := r.book("p").page(lease(1)), r.book("p").page(lease(2)), r.book("p").page(lease(3))
		first.keep(job.Report{Progress: []byte("1")})
		synctest.Wait()
		time.Sleep(time.Second)
		first.keep(job.Report{Progress: []byte("2")})
		cancel()
		second.keep(job.Report{Progress: []byte("1")})
		second.finish(&end{})
		r.close()
		third.keep(job.Report{Progress: []byte("1")})
		third.finish(&end{})
		_, settled := r.counts()
		require.Equal(t, 2, settled)
	})
}

func TestOneStatementSavesSoManyNotesAndThoseOfTheEndedFirst(t *testing.T) {
	s := newShelf(t.Context(), 0, nil, nil)
	s.closed = true // nobody writes
	b := s.book("p")
	take := func() ([]taken, bool) {
		batch, urgent, _ := b.take(time.Now(), false)
		return batch, urgent
	}
	log := func(lines int) job.Report { return job.Report{Log: &job.AttemptLog{Lines: make([]job.LogLine, lines)}} }
	pages := make([]*page, 3*notesAtOnce/2+1)
	for i := range pages {
		pages[i] = b.page(lease(i))
		pages[i].keep(log(1))
	}
	last := pages[len(pages)-1]
	last.end = &end{}
	b.ending = append(b.ending, last)
	pages[1].keep(log(2)) // in place of what it had before
	first, urgent := take()
	require.True(t, urgent)
	require.Len(t, first, notesAtOnce)
	require.Equal(t, last, first[0].page)
	require.Len(t, first[2].note.Log.Lines, 2)
	second, urgent := take()
	require.False(t, urgent)
	require.Len(t, second, notesAtOnce/2+1)

	for i := range 3 {
		pages[i].keep(log(logLinesAtOnce * 2 / 3))
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many lines")
	}
	for i := range 3 {
		pages[i].keep(job.Report{Checkpoint: []byte(strings.Repeat("x", 2*noteBytesAtOnce))})
	}
	for range 3 {
		one, _ := take()
		require.Len(t, one, 1, "so many bytes, but never none")
	}
}
