package bench

import (
	"fmt"
	"math"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// Print prints the report as tables.
func (r *Report) Print(to show.Screen) error {
	m := r.Machine
	fields := show.NewFields(to)
	fields.Add("machine", fmt.Sprintf("%d × %s, %s", m.CPUs, m.CPU, m.System))
	fields.Add("versions", fmt.Sprintf("Holdfast %s, PostgreSQL %s, %s", m.Holdfast, m.PostgreSQL, m.Go))
	for _, name := range reported {
		fields.Add(name, m.Settings[name])
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
	table := show.NewTable(to, "CASE", "FIGURE", "MIN", "MEDIAN", "MAX", "UNIT")
	for _, c := range s.Cases {
		name := c.Name
		for _, f := range c.Figures {
			table.Row(name, f.Name, show.Right(rounded(f.Min)), show.Right(rounded(f.Median)), show.Right(rounded(f.Max)), f.Unit)
			name = ""
		}
	}
	return table.Flush()
}

// rounded formats a value with three significant digits, or all digits before the
// point if those are more.
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
