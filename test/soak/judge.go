package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// row is what one step has used.
type row struct {
	jobs   int // submitted so far
	values []float64
}

// verdict compares the halves of a run by one figure.
type verdict struct {
	figure
	first, second, bound float64
	// judged is false if the run was too short for this figure.
	judged bool
}

func (v verdict) held() bool { return !v.judged || v.second <= v.bound }

// judge compares the maximum of the second half of the rows with that of the first.
func judge(rows []row, long bool) []verdict {
	all := make([]verdict, len(figures))
	for i, f := range figures {
		v := verdict{figure: f, judged: long || !f.needsTime}
		for n, row := range rows {
			if n < len(rows)/2 {
				v.first = max(v.first, row.values[i])
			} else {
				v.second = max(v.second, row.values[i])
			}
		}
		v.bound = v.first*(1+f.share) + f.room
		all[i] = v
	}
	return all
}

// number is how people read the figure.
func (f figure) number(value float64) string {
	if f.bytes {
		return fmt.Sprintf("%.1f", value/mebi)
	}
	return fmt.Sprintf("%.0f", value)
}

// show prints the table and the verdicts in Markdown, and reports whether everything has held.
func show(out io.Writer, rows []row, long bool) (held bool, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	line(w, "jobs", func(f figure, _ int) string { return f.name })
	line(w, "---", func(figure, int) string { return "---" })
	for _, row := range rows {
		line(w, fmt.Sprint(row.jobs), func(f figure, i int) string { return f.number(row.values[i]) })
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "| figure\t| first half\t| second half\t| allowed\t| \t|")
	fmt.Fprintln(w, "| ---\t| ---\t| ---\t| ---\t| ---\t|")
	held = true
	for _, v := range judge(rows, long) {
		word := "held"
		switch {
		case !v.judged:
			word = "not judged: the run was too short"
		case !v.held():
			word, held = "GROWS", false
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t|\n", v.name, v.number(v.first), v.number(v.second), v.number(v.bound), word)
	}
	return held, w.Flush()
}

func line(w io.Writer, first string, cell func(f figure, i int) string) {
	cells := []string{first}
	for i, f := range figures {
		cells = append(cells, cell(f, i))
	}
	fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| "))
}
