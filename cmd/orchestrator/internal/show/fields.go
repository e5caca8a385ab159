package show

import "strings"

// Fields prints names and values, one pair per line.
type Fields struct {
	screen Screen
	names  []string
	values []Cell
}

// NewFields returns an empty list.
func NewFields(s Screen) *Fields { return &Fields{screen: s} }

// Add adds a value, a Cell or a text, unless its text is empty.
func (f *Fields) Add(name string, value any) {
	if cell := cellOf(value); cell.Text != "" {
		f.names, f.values = append(f.names, name), append(f.values, cell)
	}
}

// Flush prints what was added.
func (f *Fields) Flush() error {
	widest := 0
	for _, name := range f.names {
		widest = max(widest, Width(name))
	}
	var out strings.Builder
	for i, name := range f.names {
		out.WriteString(f.screen.Paint(Head, name) + padding(name, widest) + gap)
		out.WriteString(f.screen.Paint(f.values[i].Style, Clean(f.values[i].Text)) + "\n")
	}
	f.names, f.values = nil, nil
	_, err := f.screen.Write([]byte(out.String()))
	return err
}
