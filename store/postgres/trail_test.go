package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStandbyIsAsOldAsTheLatestMarkThatItHasReplayed(t *testing.T) {
	began := time.Now()
	var primary trail
	require.False(t, primary.known())
	_, ok := primary.asOf(1 << 40)
	require.False(t, ok)
	for second, position := range []int64{100, 200, 200, 200, 300} {
		primary.add(began.Add(time.Duration(second)*time.Second), Position{Cluster: 1, Database: 2, Timeline: 1, Position: position})
	}
	require.True(t, primary.known())
	for position, second := range map[int64]time.Duration{100: 0, 199: 0, 200: 3, 299: 3, 300: 4, 400: 4} {
		asOf, ok := primary.asOf(position)
		require.True(t, ok, position)
		require.Equal(t, second*time.Second, asOf.Sub(began), position)
	}
	_, ok = primary.asOf(99)
	require.False(t, ok, "it is behind all marks")
}

func TestATrailBeginsAnewWithAnotherPast(t *testing.T) {
	old := Position{Cluster: 1, Database: 2, Timeline: 1, Position: 100}
	for name, next := range map[string]Position{
		"another cluster":  {Cluster: 9, Database: 2, Timeline: 1, Position: 200},
		"another database": {Cluster: 1, Database: 9, Timeline: 1, Position: 200},
		"another timeline": {Cluster: 1, Database: 2, Timeline: 2, Position: 200},
		"a lost end":       {Cluster: 1, Database: 2, Timeline: 1, Position: 90},
	} {
		var primary trail
		primary.add(time.Now(), old)
		primary.add(time.Now(), next)
		require.Len(t, primary.marks, 1, name)
		require.Equal(t, next, primary.last, name)
	}
}

func TestALongTrailForgetsEverySecondOldMark(t *testing.T) {
	began := time.Now()
	var primary trail
	const seconds = 20_000
	for second := range int64(seconds) {
		primary.add(began.Add(time.Duration(second)*time.Second), Position{Timeline: 1, Position: second})
		require.LessOrEqual(t, len(primary.marks), maxMarks)
	}
	require.Zero(t, primary.marks[0].position, "the first stays")
	for _, behind := range []int64{0, 1, 10, 100, 1000, 10_000} {
		asOf, ok := primary.asOf(seconds - 1 - behind)
		require.True(t, ok)
		lag := began.Add((seconds - 1) * time.Second).Sub(asOf)
		require.GreaterOrEqual(t, lag, time.Duration(behind)*time.Second, "it is never said to be younger than it is")
		if behind <= maxMarks/4 {
			require.Equal(t, time.Duration(behind)*time.Second, lag)
		}
	}
}
