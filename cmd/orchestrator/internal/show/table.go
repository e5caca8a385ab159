package show

import (
	"slices"
	"strings"
)

// Cell is one place in a table. Its text needs not be clean.
type Cell struct {
	Text  string
	Style Style
}

// Text is a plain cell.
func Text(text string) Cell { return Cell{Text: text} }

// Column heads one column.
type Column struct {
	Name string
	// Right aligns numbers.
	Right bool
	// Cut is for free text in the last column: on a terminal it ends, with an
	// ellipsis, where the screen does.
	Cut bool
	// Wrap is for sentences in the last column: on a terminal they go on below
	// where they began.
	Wrap bool
}

// Table aligns rows. Rows are printed by Flush; those that come later are
// aligned with them as far as they fit. On a terminal a table is no wider than
// the screen: the columns that do not fit go on with an indented line of their
// own below each row. Anywhere else a row is one line, and whole.
type Table struct {
	screen  Screen
	columns []Column
	widths  []int
	rows    [][]Cell
	// starts are the columns that lines of the head begin with; nil before the
	// head is printed.
	starts []int
}

const (
	gap    = "  "
	indent = "  "
	// leastRoom is what free text must have beside other columns; with less it
	// gets a line of its own.
	leastRoom = 30
)

// NewTable returns a table without rows.
func NewTable(s Screen, columns ...Column) *Table {
	t := &Table{screen: s, columns: columns, widths: make([]int, len(columns))}
	for i, column := range columns {
		t.widths[i] = Width(column.Name)
	}
	return t
}

// Row adds a row with a cell for each column.
func (t *Table) Row(cells ...Cell) {
	row := make([]Cell, len(t.columns))
	for i, cell := range cells {
		cell.Text = Clean(cell.Text)
		row[i] = cell
		t.widths[i] = max(t.widths[i], Width(cell.Text))
	}
	t.rows = append(t.rows, row)
}

// Flush prints the rows since the last one, under the head of the table. The
// head comes again when later rows need more lines.
func (t *Table) Flush() error {
	var out strings.Builder
	if starts := t.layout(); !slices.Equal(starts, t.starts) {
		t.starts = starts
		head := make([]Cell, len(t.columns))
		for i, column := range t.columns {
			head[i] = Cell{Text: column.Name, Style: Head}
		}
		t.print(&out, head)
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
	for i := 1; i < len(t.columns); i++ {
		needed := t.widths[i]
		if t.columns[i].Cut || t.columns[i].Wrap {
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

// print prints a row. Of the lines below the first, those with nothing on them
// are left out.
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
		if t.screen.Terminal && t.columns[i].Wrap {
			lines := fill(cell.Text, room)
			below = lines[1:]
			cell.Text = lines[0]
		}
		if t.screen.Terminal && i > 0 { // what a row begins with tells it from others
			cell.Text = Shorten(cell.Text, room)
		}
		blank := padding(cell.Text, t.widths[i])
		if t.columns[i].Right {
			out.WriteString(blank)
		}
		out.WriteString(t.screen.Paint(cell.Style, cell.Text))
		if !t.columns[i].Right && i < end-1 {
			out.WriteString(blank)
		}
		if i < end-1 {
			at += t.widths[i]
		}
	}
	out.WriteByte('\n')
	for _, text := range below {
		out.WriteString(strings.Repeat(" ", at) + t.screen.Paint(row[end-1].Style, text) + "\n")
	}
}
