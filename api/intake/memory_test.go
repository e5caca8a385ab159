package intake

import (
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestTheMemoryOfBodiesIsBounded(t *testing.T) {
	m := NewMemory(100)
	small, large := m.Share(), m.Share()
	require.NoError(t, large.Hold(freeBytes+100))
	require.Error(t, large.Hold(1))
	require.NoError(t, small.Hold(freeBytes), "which is not counted")
	require.Error(t, small.Hold(1))
	require.NoError(t, large.Hold(-1))
	require.NoError(t, small.Hold(1))
	require.Error(t, large.Hold(1))
	large.Release()
	small.Release()
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
		m := NewMemory(bound)
		s := m.Share()
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
		s.Release()
		require.Equal(t, bound, m.left, name)
	}
}

func TestGarbageIsCollectedBeforeItIsMuch(t *testing.T) {
	m := NewMemory(400_000)
	collections := 0
	m.collect = func() { collections++ }
	for range 100 {
		small := m.Share()
		require.NoError(t, small.Hold(freeBytes))
		small.Release()
	}
	require.Zero(t, collections, "small bodies leave that to the runtime")
	for range 10 {
		large := m.Share()
		require.NoError(t, large.Hold(30_000)) // When it is copied, slightly more than a quarter of the bound.
		large.Release()
	}
	require.Equal(t, 10, collections)
	require.Equal(t, 400_000, m.left)
}

func TestSharesOfManyGoroutinesAddUp(t *testing.T) {
	m := NewMemory(10 * freeBytes)
	var all sync.WaitGroup
	for range 8 {
		s := m.Share()
		for range 2 {
			all.Go(func() {
				for i := range 10_000 {
					if s.Hold(i*7) == nil {
						_ = s.Hold(-i * 7)
					}
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, 10*freeBytes, m.left)
}

func TestLinesAreChargedForWhatTheyKeep(t *testing.T) {
	m := NewMemory(readAtOnce)
	s := m.Share()
	long := strings.Repeat("x", 4*readAtOnce)
	_, err := newLineReader(iotest.OneByteReader(strings.NewReader(long)), 1<<20, s).next()
	require.ErrorContains(t, err, "too much is being received at once")
	s.Release()
	require.Equal(t, readAtOnce, m.left)
}
