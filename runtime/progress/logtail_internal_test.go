package progress

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// kept is what a log tail has saved last, and how often it did.
type kept struct {
	saves   int
	lines   []job.LogLine
	dropped int64
}

// keeper takes what is saved, on whatever goroutine.
type keeper struct {
	mu   sync.Mutex
	last kept
}

func (k *keeper) save(lines []job.LogLine, dropped int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = kept{saves: k.last.saves + 1, lines: lines, dropped: dropped}
}

func (k *keeper) look() kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

func (k kept) messages() (texts []string) {
	for _, line := range k.lines {
		texts = append(texts, line.Message)
	}
	return texts
}

func said(text string) job.LogLine { return job.LogLine{Level: job.LogInfo, Message: text} }

func TestALogIsSavedOnceASecondAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		tail := newLogTail(k.save)
		for i := range 25 { // for two and a half seconds
			tail.add(said(fmt.Sprint(i)))
			time.Sleep(saveLogAfter / 10)
			synctest.Wait()
		}
		require.Equal(t, 2, k.look().saves)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 3, k.look().saves, "what came last")
		require.Len(t, k.look().lines, 25)
		tail.add(said("the end"))
		tail.end()
		require.Equal(t, 4, k.look().saves)
		require.Equal(t, "the end", k.look().lines[25].Message)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 4, k.look().saves)
	})
}

func TestTheEndSavesNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		tail := newLogTail(k.save)
		tail.add(said("a"))
		time.Sleep(saveLogAfter)
		synctest.Wait()
		tail.end()
		require.Equal(t, 1, k.look().saves)
	})
}

func TestTheLastLinesAreKept(t *testing.T) {
	var k keeper
	tail := newLogTail(k.save)
	tail.add(job.LogLine{Message: "0", Dropped: 7})
	for i := range 5 * maxLogLines {
		tail.add(said(fmt.Sprint(i + 1)))
	}
	tail.end()
	require.Len(t, k.look().lines, maxLogLines)
	require.Equal(t, fmt.Sprint(5*maxLogLines), k.look().lines[maxLogLines-1].Message)
	require.EqualValues(t, 4*maxLogLines+1+7, k.look().dropped)
}

func TestFewerLinesAreKeptIfTheyAreLong(t *testing.T) {
	var k keeper
	tail := newLogTail(k.save)
	long := strings.Repeat("x", maxLogText)
	for range 20 {
		tail.add(job.LogLine{Message: long, Attributes: []byte(`"` + long[2:] + `"`)})
	}
	tail.end()
	require.Len(t, k.look().lines, maxLogBytes/maxLogText/2)
	require.EqualValues(t, 20-len(k.look().lines), k.look().dropped)
}

func TestALineIsCutToSize(t *testing.T) {
	var k keeper
	tail := newLogTail(k.save)
	tail.add(job.LogLine{Message: strings.Repeat("é", maxLogText), Attributes: []byte(strings.Repeat("1", maxLogText+1))})
	tail.add(job.LogLine{Message: "short\x00", Attributes: []byte(`{}`)})
	tail.end()
	require.True(t, k.look().lines[0].Truncated)
	require.Equal(t, strings.Repeat("é", maxLogText/2), k.look().lines[0].Message)
	require.Nil(t, k.look().lines[0].Attributes)
	require.Equal(t, job.LogLine{Message: "short\uFFFD", Attributes: []byte(`{}`)}, k.look().lines[1])
}

func TestSavedLinesAreNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		tail := newLogTail(k.save)
		defer tail.end()
		tail.add(said("a"))
		time.Sleep(saveLogAfter)
		synctest.Wait()
		first := k.look()
		for range 3 * maxLogLines {
			tail.add(said("b"))
		}
		require.Equal(t, []string{"a"}, first.messages())
	})
}
