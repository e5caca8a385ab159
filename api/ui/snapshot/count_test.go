package snapshot_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// book counts so many pages of 1,000 jobs. Each takes a second.
type book struct {
	pages int
	asked []string
	err   error
	// breaks is the page that cannot be counted.
	breaks string
}

func (b *book) ask(_ context.Context, frozen time.Time, cursor string) (v1.OperationAnswer, error) {
	b.asked = append(b.asked, cursor)
	time.Sleep(time.Second)
	if frozen.IsZero() {
		frozen = time.Now()
	}
	if b.breaks != "" && cursor == b.breaks {
		return v1.OperationAnswer{}, errors.New("no database")
	}
	page, _ := strconv.Atoi(cursor)
	answer := v1.OperationAnswer{Count: 1000, FrozenAt: frozen}
	if page++; page < b.pages {
		answer.More, answer.NextCursor = true, strconv.Itoa(page)
	}
	return answer, b.err
}

func TestACountGoesOnForAllWhoLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, book := snapshot.NewCounts(), &book{pages: 4}
		of := func(frozen time.Time) v1.OperationAnswer {
			answer, err := counts.Of(t.Context(), "k", frozen, book.ask)
			require.NoError(t, err)
			return answer.OperationAnswer
		}
		first := of(time.Time{})
		require.Equal(t, 1000, first.Count)
		require.True(t, first.More)
		require.Equal(t, first, of(time.Time{}), "another viewer")

		time.Sleep(6 * time.Second) // A part takes a second, and the pause after it three.
		require.Equal(t, 3000, of(time.Time{}).Count)
		time.Sleep(6 * time.Second)
		last := of(first.FrozenAt)
		require.Equal(t, v1.OperationAnswer{Count: 4000, FrozenAt: first.FrozenAt}, last)
		require.Equal(t, []string{"", "1", "2", "3"}, book.asked)

		require.Equal(t, 1000, of(time.Time{}).Count, "a new one begins")
		require.Equal(t, last, of(first.FrozenAt), "and the old one is known")
		time.Sleep(time.Minute)
	})
}

func TestACountWaitsUntilSomebodyLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, book := snapshot.NewCounts(), &book{pages: 10}
		first, err := counts.Of(t.Context(), "k", time.Time{}, book.ask)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		left, err := counts.Of(t.Context(), "k", first.FrozenAt, book.ask)
		require.NoError(t, err)
		require.Less(t, left.Count, 6000)
		for left.More {
			time.Sleep(time.Second)
			left, err = counts.Of(t.Context(), "k", first.FrozenAt, book.ask)
			require.NoError(t, err)
		}
		require.Equal(t, 10_000, left.Count)
		require.Len(t, book.asked, 10)
		time.Sleep(time.Minute)
	})
}

func TestACountThatStopsSaysWhyAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, book := snapshot.NewCounts(), &book{pages: 4, breaks: "2"}
		first, err := counts.Of(t.Context(), "k", time.Time{}, book.ask)
		require.NoError(t, err)
		require.NoError(t, first.Stopped)
		look := func() snapshot.Counted {
			time.Sleep(8 * time.Second) // two parts, and the pause between them
			synctest.Wait()
			found, err := counts.Of(t.Context(), "k", first.FrozenAt, book.ask)
			require.NoError(t, err)
			return found
		}
		found := look()
		require.EqualError(t, found.Stopped, "no database")
		require.Equal(t, 2000, found.Count)
		require.True(t, found.More)

		time.Sleep(8 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"", "1", "2", "2"}, book.asked, "whoever looked had it tried again")
		book.breaks = ""
		require.EqualError(t, look().Stopped, "no database", "as of the last try")
		found = look()
		require.NoError(t, found.Stopped)
		require.Equal(t, 4000, found.Count)
		time.Sleep(time.Minute)
	})
}

func TestACountThatCannotBeginSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, book := snapshot.NewCounts(), &book{pages: 1, err: errors.New("refused")}
		_, err := counts.Of(t.Context(), "k", time.Time{}, book.ask)
		require.ErrorIs(t, err, book.err)
		book.err = nil
		answer, err := counts.Of(t.Context(), "k", time.Time{}, book.ask)
		require.NoError(t, err)
		require.Equal(t, 1000, answer.Count)

		waiting, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		answer, err = counts.Of(waiting, "another", time.Time{}, book.ask)
		require.NoError(t, err)
		require.Equal(t, v1.OperationAnswer{More: true}, answer.OperationAnswer, "nothing is known yet")
		time.Sleep(time.Minute)
	})
}
