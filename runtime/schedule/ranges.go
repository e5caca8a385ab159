package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cronField is what a field of a cron text counts. Names begin at the lowest value.
type cronField struct {
	lowest, highest int
	names           []string
}

// cronFields are the fields of a cron text that begins with seconds.
var cronFields = []cronField{
	{highest: 59},
	{highest: 59},
	{highest: 23},
	{lowest: 1, highest: 31},
	{lowest: 1, highest: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{highest: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// checkRanges refuses ranges that run backwards, such as 5-1. The parser would take them for
// two ranges, cronie refuses them, and others match nothing.
func checkRanges(fields []string) error {
	of := cronFields[len(cronFields)-len(fields):]
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			span, step, _ := strings.Cut(item, "/")
			first, last, isRange := strings.Cut(span, "-")
			from, isFrom := of[i].value(first)
			to, isTo := of[i].value(last)
			if !isRange || !isFrom || !isTo || from <= to {
				continue
			}
			if step != "" {
				return fmt.Errorf("has a range that runs backwards, %q; list the values instead, such as %s,%s", item, first, last)
			}
			return fmt.Errorf("has a range that runs backwards, %q; write %s", item, of[i].around(first, last, from, to))
		}
	}
	return nil
}

// value reads a number or a name.
func (f cronField) value(text string) (int, bool) {
	if at := slices.Index(f.names, strings.ToLower(text)); at >= 0 {
		return f.lowest + at, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// around is the range through the end of the field: two ranges that run forwards.
func (f cronField) around(first, last string, from, to int) string {
	lowest, highest := strconv.Itoa(f.lowest), strconv.Itoa(f.highest)
	if _, err := strconv.Atoi(first); err != nil {
		lowest, highest = strings.ToUpper(f.names[0]), strings.ToUpper(f.names[len(f.names)-1])
	}
	before, after := first+"-"+highest, lowest+"-"+last
	if from >= f.highest {
		before = first
	}
	if to == f.lowest {
		after = last
	}
	return before + "," + after
}
