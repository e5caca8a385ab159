// Package graph lays out things that come after one another, from left to right: each is in a
// column right of all that it comes after. Columns with many of them become grids of small boxes.
package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sizes, in pixels. Boxes are at least 24 pixels apart, so that a finger hits one.
const (
	margin     = 4
	boxWidth   = 168
	boxHeight  = 40
	boxGap     = 12
	cellSize   = 24
	cellGap    = 4
	columnGap  = 64
	maxBoxes   = 12 // of a column, before it becomes a grid
	minRows    = 8  // of a grid
	maxRows    = 24
	maxLines   = 60 // from one column to another, before they become one
	lineOffset = 4  // of lines from the box that they lead to
)

// Drawing is what Of returns.
type Drawing struct {
	Width, Height int
	// Boxes has one for each thing, in their order.
	Boxes []Box
	Lines []Line
	// Bundled is how many lines became one that leads from column to column.
	Bundled int
}

// Box is where a thing is.
type Box struct {
	X, Y, Width, Height int
	// Depth is the number of its column, from 0.
	Depth int
	// Small says that it has no room for a name.
	Small bool
}

// Line leads from a thing to one that comes after it.
type Line struct {
	X1, Y1, X2, Y2 int
	// Bundle says that it stands for many.
	Bundle bool
}

// Path is the line for the attribute d of an SVG path.
func (l Line) Path() string {
	bend := max((l.X2-l.X1)/2, columnGap/2)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", l.X1, l.Y1, l.X1+bend, l.Y1, l.X2-bend, l.Y2, l.X2, l.Y2)
}

// Of lays out things. For each, after has the indexes of those before it. Nothing has cycles.
func Of(after [][]int) Drawing {
	drawn := Drawing{Boxes: make([]Box, len(after))}
	columns := columnsOf(Depths(after))
	for depth, column := range columns {
		if depth > 0 {
			drawn.untangle(column, after)
		}
		drawn.place(column, depth)
	}
	for depth, column := range columns { // in the middle
		down := margin + (drawn.Height-bottom(drawn.Boxes, column))/2
		for _, i := range column {
			drawn.Boxes[i].Y += down
			drawn.Boxes[i].Depth = depth
		}
	}
	drawn.Height += 2 * margin
	drawn.Width += margin
	drawn.connect(columns, after)
	return drawn
}

// Depths is the length of the longest way to each thing.
func Depths(after [][]int) []int {
	depths, missing := make([]int, len(after)), make([]int, len(after))
	next := make([][]int, len(after))
	var free []int
	for i, before := range after {
		if missing[i] = len(before); len(before) == 0 {
			free = append(free, i)
		}
		for _, one := range before {
			next[one] = append(next[one], i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, i := range next[free[0]] {
			depths[i] = max(depths[i], depths[free[0]]+1)
			if missing[i]--; missing[i] == 0 {
				free = append(free, i)
			}
		}
	}
	return depths
}

func columnsOf(depths []int) [][]int {
	if len(depths) == 0 {
		return nil
	}
	columns := make([][]int, slices.Max(depths)+1)
	for i, depth := range depths {
		columns[depth] = append(columns[depth], i)
	}
	return columns
}

// untangle puts the things of a column near to those before them.
func (d *Drawing) untangle(column []int, after [][]int) {
	middle := map[int]float64{}
	for _, i := range column {
		for _, before := range after[i] {
			middle[i] += float64(d.Boxes[before].Y) / float64(len(after[i]))
		}
	}
	slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
}

// place gives the things of a column their places, from the top.
func (d *Drawing) place(column []int, depth int) {
	left := d.Width + columnGap
	if depth == 0 {
		left = margin
	}
	box, gap, rows := Box{Width: boxWidth, Height: boxHeight}, boxGap, len(column)
	if len(column) > maxBoxes {
		box, gap = Box{Width: cellSize, Height: cellSize, Small: true}, cellGap
		rows = min(max(int(math.Sqrt(float64(len(column)))), minRows), maxRows)
	}
	for at, i := range column {
		d.Boxes[i] = box
		d.Boxes[i].X, d.Boxes[i].Y = left+at/rows*(box.Width+gap), at%rows*(box.Height+gap)
		d.Width, d.Height = max(d.Width, d.Boxes[i].X+box.Width), max(d.Height, d.Boxes[i].Y+box.Height)
	}
}

func bottom(boxes []Box, column []int) (lowest int) {
	for _, i := range column {
		lowest = max(lowest, boxes[i].Y+boxes[i].Height)
	}
	return lowest
}

// connect draws the lines. Very many of them between two columns become one.
func (d *Drawing) connect(columns [][]int, after [][]int) {
	type pair struct{ from, to int }
	counts := map[pair]int{}
	each := func(do func(from, to Box, columns pair)) {
		for _, column := range columns {
			for _, i := range column {
				for _, before := range after[i] {
					from, to := d.Boxes[before], d.Boxes[i]
					do(from, to, pair{from.Depth, to.Depth})
				}
			}
		}
	}
	each(func(_, _ Box, p pair) { counts[p]++ })
	drawn := map[pair]bool{}
	each(func(from, to Box, p pair) {
		line := Line{from.X + from.Width, from.Y + from.Height/2, to.X - lineOffset, to.Y + to.Height/2, false}
		if counts[p] > maxLines {
			d.Bundled++
			if drawn[p] {
				return
			}
			drawn[p] = true
			right := from.X + from.Width
			for _, i := range columns[p.from] {
				right = max(right, d.Boxes[i].X+d.Boxes[i].Width)
			}
			left := to.X
			for _, i := range columns[p.to] {
				left = min(left, d.Boxes[i].X)
			}
			line = Line{right, d.Height / 2, left - lineOffset, d.Height / 2, true}
		}
		d.Lines = append(d.Lines, line)
	})
}
