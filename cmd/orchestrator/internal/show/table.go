package show

import "strings"

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
}

// Table aligns rows. Rows are printed by Flush; those that come later are
// aligned with them as far as they fit. On a terminal the last column is cut
// where the screen ends.
type Table struct {
	screen  Screen
	columns []Column
	widths  []int
	rows    [][]Cell
	headed  bool
}

const gap = "  "

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

// Flush prints the rows since the last one, under the head of the table.
func (t *Table) Flush() error {
	var out strings.Builder
	if !t.headed {
		head := make([]Cell, len(t.columns))
		for i, column := range t.columns {
			head[i] = Cell{Text: column.Name, Style: Head}
		}
		t.line(&out, head)
		t.headed = true
	}
	for _, row := range t.rows {
		t.line(&out, row)
	}
	t.rows = nil
	_, err := t.screen.Write([]byte(out.String()))
	return err
}

func (t *Table) line(out *strings.Builder, row []Cell) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	for i, cell := range row[:last+1] {
		if i > 0 {
			out.WriteString(gap)
		}
		if i > 0 && i == len(row)-1 && t.screen.Terminal {
			cell.Text = Shorten(cell.Text, t.room())
		}
		blank := padding(cell.Text, t.widths[i])
		if t.columns[i].Right {
			out.WriteString(blank)
		}
		out.WriteString(t.screen.Paint(cell.Style, cell.Text))
		if !t.columns[i].Right && i < last {
			out.WriteString(blank)
		}
	}
	out.WriteByte('\n')
}

// leastRoom is what the last column has on a screen that is too narrow.
const leastRoom = 20

// room is how wide the last column may be.
func (t *Table) room() int {
	room := t.screen.Width()
	for _, width := range t.widths[:len(t.widths)-1] {
		room -= width + len(gap)
	}
	return max(room, leastRoom)
}
