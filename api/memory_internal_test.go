package api

import (
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestWhatBodiesHoldIsBounded(t *testing.T) {
	m := newMemory(100)
	small, large := m.share(), m.share()
	require.NoError(t, large.hold(freeBytes+100))
	require.Error(t, large.hold(1))
	require.NoError(t, small.hold(freeBytes), "which is not counted")
	require.Error(t, small.hold(1))
	require.NoError(t, large.hold(-1))
	require.NoError(t, small.hold(1))
	require.Error(t, large.hold(1))
	large.release()
	small.release()
	require.Equal(t, 100, m.left)
}

func TestABodyIsChargedForTheMemoryThatIsReservedForIt(t *testing.T) {
	const bound = 1 << 20
	for name, c := range map[string]struct {
		sent     int
		declared int64
		most     int // of what is charged
	}{
		"the whole, declared":        {sent: 300_000, declared: 300_000, most: 300_001},
		"undeclared":                 {sent: 300_000, declared: -1, most: 600_000},
		"hardly any of a large one":  {sent: 100, declared: 900_000, most: firstBuffer + 1},
		"the first half of it":       {sent: 300_000, declared: 600_000, most: 600_000},
		"nothing":                    {sent: 0, declared: 0, most: 1},
		"more than fits beside it":   {sent: 900_000, declared: -1, most: -1},
		"more than fits for a while": {sent: 900_000, declared: 900_000, most: -1},
	} {
		m := newMemory(bound)
		s := m.share()
		text := strings.Repeat("x", c.sent)
		read, err := readAll(iotest.HalfReader(strings.NewReader(text)), c.declared, s)
		if c.most < 0 {
			require.ErrorContains(t, err, "too much is being received at once", name)
		} else {
			require.NoError(t, err, name)
			require.Equal(t, text, string(read), name)
			require.Equal(t, cap(read), s.held, name)
			require.LessOrEqual(t, s.held, c.most, name)
		}
		s.release()
		require.Equal(t, bound, m.left, name)
	}
}

func TestABatchIsChargedForEachOfItsItems(t *testing.T) {
	m := newMemory(100 * itemBytes)
	s := m.share()
	sent := charged{newArray(strings.NewReader("["+strings.Repeat("1,", 1000)+"1]"), 10), s}
	taken := 0
	for {
		if _, err := sent.next(); err != nil {
			require.ErrorContains(t, err, "too much is being received at once")
			break
		}
		taken++
	}
	require.Equal(t, (freeBytes+100*itemBytes)/itemBytes, taken)
}

func TestGarbageIsCollectedBeforeItIsMuch(t *testing.T) {
	m := newMemory(400_000)
	collections := 0
	m.collect = func() { collections++ }
	for range 100 {
		small := m.share()
		require.NoError(t, small.hold(freeBytes))
		small.release()
	}
	require.Zero(t, collections, "small bodies leave that to the runtime")
	for range 10 {
		large := m.share()
		require.NoError(t, large.hold(30_000)) // A bit more than a quarter of the bound, when copied.
		large.release()
	}
	require.Equal(t, 10, collections)
	require.Equal(t, 400_000, m.left)
}

func TestSharesOfManyGoroutinesAddUp(t *testing.T) {
	m := newMemory(10 * freeBytes)
	var all sync.WaitGroup
	for range 8 {
		s := m.share()
		for range 2 {
			all.Go(func() {
				for i := range 10_000 {
					if s.hold(i*7) == nil {
						_ = s.hold(-i * 7)
					}
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, 10*freeBytes, m.left)
}

func TestLinesAreChargedForWhatTheyKeep(t *testing.T) {
	m := newMemory(readAtOnce)
	s := m.share()
	long := strings.Repeat("x", 4*readAtOnce)
	_, err := newLines(iotest.OneByteReader(strings.NewReader(long)), 1<<20, s).next()
	require.ErrorContains(t, err, "too much is being received at once")
	s.release()
	require.Equal(t, readAtOnce, m.left)
}
