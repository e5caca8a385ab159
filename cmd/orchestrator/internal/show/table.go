package show

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cell is one value in a table or a list of fields. Its text need not be clean.
type Cell struct {
	Text  string
	Style Style
	// Right aligns the cell, and with it the head of its column, to the right.
	Right bool
}

// Right returns a cell that is aligned to the right.
func Right(text string) Cell { return Cell{Text: text, Right: true} }

// cellOf returns the cell for a value: a Cell; a number, with its thousands set
// apart; a duration, as its Age; or anything else, as fmt prints it. Numbers and
// durations are aligned to the right.
func cellOf(value any) Cell {
	switch v := value.(type) {
	case Cell:
		return v
	case string:
		return Cell{Text: v}
	case int:
		return Right(Count(v))
	case int64:
		return Right(Count(v))
	case time.Duration:
		return Right(Age(v))
	}
	return Cell{Text: fmt.Sprint(value)}
}

// Table aligns rows. Flush prints them; later rows are aligned with them as far as
// they fit. On a terminal a table is no wider than the screen: columns that do not
// fit continue below each row, on an indented line of their own. Anywhere else a row
// is one whole line.
type Table struct {
	screen Screen
	heads  []Cell
	widths []int
	rows   [][]Cell
	// cut and wrap say what happens to the last column on a terminal.
	cut, wrap bool
	// starts are the columns that lines of the head begin with; nil before the
	// head is printed.
	starts []int
}

const (
	gap    = "  "
	indent = "  "
	// leastRoom is how much room free text needs beside other columns. With less it
	// gets a line of its own.
	leastRoom = 30
)

// NewTable returns a table without rows.
func NewTable(s Screen, names ...string) *Table {
	t := &Table{screen: s}
	for _, name := range names {
		t.heads = append(t.heads, Cell{Text: name, Style: Head})
		t.widths = append(t.widths, Width(name))
	}
	return t
}

// CutLast is for free text in the last column: on a terminal it ends, with an
// ellipsis, where the screen ends.
func (t *Table) CutLast() *Table {
	t.cut = true
	return t
}

// WrapLast is for sentences in the last column: on a terminal they continue below
// their beginning.
func (t *Table) WrapLast() *Table {
	t.wrap = true
	return t
}

// Row adds a row with a value for each column: a Cell, a text, a number, or a
// duration.
func (t *Table) Row(values ...any) {
	row := make([]Cell, len(t.heads))
	for i, value := range values {
		row[i] = cellOf(value)
		row[i].Text = Clean(row[i].Text)
		t.heads[i].Right = t.heads[i].Right || row[i].Right
		t.widths[i] = max(t.widths[i], Width(row[i].Text))
	}
	t.rows = append(t.rows, row)
}

// Flush prints the rows that were added since the last Flush, below the head. It
// prints the head again if later rows need more lines.
func (t *Table) Flush() error {
	var out strings.Builder
	if starts := t.layout(); !slices.Equal(starts, t.starts) {
		t.starts = starts
		t.print(&out, t.heads)
	}
	for _, row := range t.rows {
		t.print(&out, row)
	}
	t.rows = nil
	_, err := t.screen.Write([]byte(out.String()))
	return err
}

// layout returns the columns that lines begin with.
func (t *Table) layout() []int {
	starts := []int{0}
	if !t.screen.Terminal {
		return starts
	}
	used := t.widths[0]
	for i := 1; i < len(t.widths); i++ {
		needed := t.widths[i]
		if t.isLast(i) && (t.cut || t.wrap) {
			needed = min(needed, leastRoom)
		}
		if used += len(gap); used+needed > t.screen.Width() {
			starts = append(starts, i)
			used = len(indent)
		}
		used += t.widths[i]
	}
	return starts
}

func (t *Table) isLast(column int) bool { return column == len(t.widths)-1 }

// print prints a row. It leaves out lines below the first that have no text.
func (t *Table) print(out *strings.Builder, row []Cell) {
	for n, first := range t.starts {
		end, at := len(row), 0
		if n+1 < len(t.starts) {
			end = t.starts[n+1]
		}
		for end > first+1 && row[end-1].Text == "" {
			end--
		}
		if n > 0 {
			if row[end-1].Text == "" {
				continue
			}
			out.WriteString(indent)
			at = len(indent)
		}
		t.line(out, row, first, end, at)
	}
}

// line prints the cells from first up to end, beginning at a column of the screen.
func (t *Table) line(out *strings.Builder, row []Cell, first, end, at int) {
	var below []string
	for i := first; i < end; i++ {
		if i > first {
			out.WriteString(gap)
			at += len(gap)
		}
		cell, room := row[i], max(t.screen.Width()-at, 1)
		if t.screen.Terminal && t.wrap && t.isLast(i) {
			lines := fill(cell.Text, room)
			below = lines[1:]
			cell.Text = lines[0]
		}
		if t.screen.Terminal && i > 0 { // The first column identifies the row.
			cell.Text = Shorten(cell.Text, room)
		}
		blank := padding(cell.Text, t.widths[i])
		if t.heads[i].Right {
			out.WriteString(blank)
		}
		out.WriteString(t.screen.Paint(cell.Style, cell.Text))
		if i < end-1 {
			if !t.heads[i].Right {
				out.WriteString(blank)
			}
			at += t.widths[i]
		}
	}
	out.WriteByte('\n')
	for _, text := range below {
		out.WriteString(strings.Repeat(" ", at) + t.screen.Paint(row[end-1].Style, text) + "\n")
	}
}
