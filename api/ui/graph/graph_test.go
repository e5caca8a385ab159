package graph_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/ui/graph"
)

func TestEachIsRightOfAllBeforeIt(t *testing.T) {
	// 4 is after 0 and 3, which is two steps after 0. The order is any.
	after := [][]int{nil, {0}, nil, {1}, {0, 3}}
	require.Equal(t, []int{0, 1, 0, 2, 3}, graph.Depths(after))
	drawn := graph.Of(after)
	require.Len(t, drawn.Boxes, 5)
	require.Len(t, drawn.Lines, 4)
	for i, before := range after {
		for _, one := range before {
			require.Greater(t, drawn.Boxes[i].X, drawn.Boxes[one].X+drawn.Boxes[one].Width)
		}
	}
	requireApart(t, drawn)
}

// requireApart checks that boxes are within the drawing, and that no two share a place.
func requireApart(t *testing.T, drawn graph.Drawing) {
	t.Helper()
	for i, a := range drawn.Boxes {
		require.GreaterOrEqual(t, a.X, 0)
		require.GreaterOrEqual(t, a.Y, 0)
		require.LessOrEqual(t, a.X+a.Width, drawn.Width)
		require.LessOrEqual(t, a.Y+a.Height, drawn.Height)
		for _, b := range drawn.Boxes[:i] {
			apart := a.X >= b.X+b.Width || b.X >= a.X+a.Width || a.Y >= b.Y+b.Height || b.Y >= a.Y+a.Height
			require.True(t, apart, "%v %v", a, b)
		}
	}
}

func TestAWideColumnIsAGrid(t *testing.T) {
	after := [][]int{nil}
	last := []int{}
	for i := range 998 {
		after = append(after, []int{0})
		last = append(last, i+1)
	}
	drawn := graph.Of(append(after, last))
	require.False(t, drawn.Boxes[0].Small)
	require.True(t, drawn.Boxes[500].Small)
	require.False(t, drawn.Boxes[999].Small)
	require.Equal(t, 2*998, drawn.Bundled)
	require.Len(t, drawn.Lines, 2)
	require.True(t, drawn.Lines[0].Bundle)
	require.Less(t, drawn.Height, 1000)
	require.Less(t, drawn.Width, 2000)
	requireApart(t, drawn)
}

func TestLinesDoNotCrossWithoutNeed(t *testing.T) {
	drawn := graph.Of([][]int{nil, nil, {1}, {0}})
	require.Less(t, drawn.Boxes[3].Y, drawn.Boxes[2].Y)
	require.Empty(t, graph.Of(nil).Boxes)
}
