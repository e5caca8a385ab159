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
