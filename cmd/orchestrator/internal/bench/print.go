package bench

import (
	"fmt"
	"math"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// Print shows the report as tables.
func (r *Report) Print(to show.Screen) error {
	m := r.Machine
	fields := show.NewFields(to)
	fields.Add("machine", show.Text(fmt.Sprintf("%d × %s, %s", m.CPUs, m.CPU, m.System)))
	fields.Add("versions", show.Text(fmt.Sprintf("Holdfast %s, PostgreSQL %s, %s", m.Holdfast, m.PostgreSQL, m.Go)))
	for _, name := range reported {
		fields.Add(name, show.Text(m.Settings[name]))
	}
	if err := fields.Flush(); err != nil {
		return err
	}
	for _, s := range r.Scenarios {
		to.Print("\n" + to.Paint(show.Head, s.Name) + ": " + s.About + "\n")
		if err := s.print(to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) print(to show.Screen) error {
	table := show.NewTable(to,
		show.Column{Name: "CASE"}, show.Column{Name: "FIGURE"},
		show.Column{Name: "MIN", Right: true}, show.Column{Name: "MEDIAN", Right: true}, show.Column{Name: "MAX", Right: true},
		show.Column{Name: "UNIT"})
	for _, c := range s.Cases {
		name := c.Name
		for _, f := range c.Figures {
			table.Row(show.Text(name), show.Text(f.Name),
				show.Text(rounded(f.Min)), show.Text(rounded(f.Median)), show.Text(rounded(f.Max)), show.Text(f.Unit))
			name = ""
		}
	}
	return table.Flush()
}

// rounded shows three digits that mean something, and all before the point.
func rounded(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	if digits <= 0 {
		return show.Count(int(math.Round(value)))
	}
	return fmt.Sprintf("%.*f", min(digits, 3), value)
}
